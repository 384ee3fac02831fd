#!/usr/bin/env bash
# mulligan stats on made-up runs: figures, refusals, exit codes. On real ones: cli_report.sh.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

while read -r record seed bpb; do
  mkdir -p "runs/${record}_$seed"
  printf '[run]\nseed = %s  # --set\n[train]\nrecord = %s  # --set\n' "$seed" "$record" >"runs/${record}_$seed/config.toml"
  echo "{\"val_bpb\": $bpb, \"val_tokens\": 10, \"val_bytes\": 40}" >"runs/${record}_$seed/result.json"
done <<'END'
1768 42 1.07146
1768 314 1.07014
1768 1337 1.07082
1886 42 1.07010
1886 314 1.06920
1886 1337 1.06942
END
see "stats ends well" 0 "$mulligan" stats runs/* --margin 0.005 --json stats.json --csv runs.csv
check_contains "Welch's test of two published records" "2.64, 3.61, 0.06" "$seen"
check_true "JSON" "$(json stats.json gain) > 0.00123 && $(json stats.json gain) < 0.00124"
check_equal "the same again" "$seen" "$("$mulligan" stats runs/* --margin 0.005)"
check_equal "a table of the values" "run,seed,window,configuration,val_bpb" "$(head -n 1 runs.csv)"
check_equal "with a row for each run" 7 "$(wc -l <runs.csv)"
check_refused "an unknown baseline" 2 "only: train.record=1768; train.record=1886" stats runs/* --baseline 2014
check_refused "nothing to read" 2 "name run directories" stats
check_refused "no run directory" 3 "is not a run directory" stats "$work"
mkdir -p half/a/seed_1 half/a/seed_2 && echo '{}' >half/a/seed_1/result.json
check_refused "a sweep that was stopped" 3 "has not finished: sweep.json is missing, and 1 of its trainings ('half/a/seed_2') has no" stats half

# The challenge's rule.
see "a record" 0 "$mulligan" stats accept --new 1.060 1.0602 1.0599 --reference 1.0700 1.0698 1.0701 --bytes-per-token 3.7 --json accept.json
check_contains "is accepted" "ACCEPT: better by more than 0.0050 nats" "$seen"
check_equal "also for programs" true "$(json accept.json accepted)"
see_all "less than the margin" 1 "$mulligan" stats accept --new 1.07010 1.06920 1.06942 --reference 1.07146 1.07014 1.07082 --bytes-per-token 3.7
check_contains "is not a record" "REJECT: the mean is better by 0.0032 nats, less than the 0.0050 that a record needs" "$seen"
check_refused "one run" 2 "two runs or more" stats accept --new 1.06 --reference 1.07 --bytes-per-token 3.7
check_refused "bits per byte alone" 3 "give --bytes-per-token" stats accept --new 1.06 1.061 --reference 1.07
check_refused "pairs that are none" 2 "as many values" stats accept --new 1.06 1.061 --reference 1.07 --paired --bytes-per-token 3.7
