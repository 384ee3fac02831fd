#!/usr/bin/env bash
# mulligan try: refusals, verdicts and their exit codes, repeated tries, further looks, early ends, crashes, signals, the lock,
# damaged and changed files, and results.tsv read by a script that knows autoresearch's five columns alone.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

tiny_data
sed 's/^steps = 20/steps = 8\nlog_every = 1/; s/^lr = .*/lr = 0.0005/' <(small_config "$work/data") >base.toml # poor rates
variant() { printf 'extends = "base.toml"\n%s\n' "$2" >"$1.toml"; }
variant better '[optimizer.embedding]
lr = 0.03'
variant nothing '[metrics]
hf_compat = true'
variant crash '[optimizer.matrices]
lr = 1e6
weight_decay = 1.0'
variant data '[data]
validation = "data/fineweb_train_*.bin"'
variant budget '[train]
steps = 9'
variant typo '[train]
step = 9'
try() { "$mulligan" try "$1.toml" --base base.toml --log "${log:-log}" "${@:2}"; }
refused() { check_refused "$1" "$2" "$3" try "$4.toml" --base base.toml --log log "${@:5}"; }

check_refused "no base" 2 "mulligan try VARIANT.toml --base BASE.toml" try better.toml
refused "an unknown key" 2 "did you mean 'train.steps'?" typo
refused "other validation data" 2 "changes data.validation, which must be the base's; take it out, or allow it with --also data.validation" data
refused "another budget" 2 "changes train.steps" budget
refused "a key that does not change" 2 "the variant does not change that key" better --also data.train
refused "the base itself" 2 "is the same configuration as its base" base
refused "a tab in a note" 2 "write it in one line" better --note $'a\tb'
refused "a line break in a note" 2 "write it in one line" better --note $'a\nb'
check "nothing was run" test ! -e log/results.tsv

see "a better variant: exit code" 0 try better --note "faster embedding"
check_contains "the difference is printed" "optimizer.embedding.lr: 0.0005 -> 0.03" "$seen"
check_contains "the noise floor" "3 pairs show" "$seen"
check_equal "autoresearch's lines" "--- val_bpb training_seconds total_seconds peak_vram_mb peak_memory_mb num_steps num_params_M verdict" \
  "$(sed -n '/^---$/,$ { s/:.*//; p; }' <<<"$seen" | xargs)"
check_true "as its users grep them" "$(sed -n 's/^val_bpb: *//p' <<<"$seen") > 1 && $(sed -n 's/^peak_vram_mb: *//p' <<<"$seen") > 10"
check_contains "the verdict" "verdict:          keep (-" "$seen"
id=$(sed -n '3s/\t.*//p' log/results.tsv)
check "what is kept of it" test -s "log/tries/$id/config.toml" -a -s "log/tries/$id/diff.txt" -a -s "log/tries/$id/try.json"

before=$(sha256sum log/results.tsv "log/tries/$id/try.json")
see "the same again: exit code" 0 try better
check_contains "the same again is named" "$id was tried before, and nothing was run" "$seen"
check_contains "with its result" "verdict:          keep (-" "$seen"
check_equal "and nothing changed" "$before" "$(sha256sum log/results.tsv "log/tries/$id/try.json")"

# Equal to the last bit: three looks.
try nothing --quiet >undecided.txt
check_equal "no difference: exit code" 11 $?
check_contains "undecided" "undecided (-0.0000 +- 0.0000, p 0.5, 3 pairs)" "$(sed 's/(+0/(-0/' undecided.txt)"
try nothing --pairs 4 --json >second.json 2>second.err
check_equal "a second look" 11 $?
check_equal "JSON alone" "undecided False 2 4 0.0375" "$(python3 -c '
import json
t = json.load(open("second.json"))
print(t["status"], t["repeated"], len(t["looks"]), t["pairs"], round(sum(look["alpha"] for look in t["looks"]), 4))')"
try nothing --pairs 5 --quiet >third.txt
check_equal "the third look decides" 10 $?
try nothing --pairs 6 --quiet >fourth.txt
check_equal "there is no fourth" 10 $?
check_contains "it is named" "was tried before" "$(cat fourth.txt)"

see "a crash: exit code" 1 try crash 2>crash.err
check_contains "its verdict" "verdict:          crash (step" "$seen"
check_contains "its sentence" "lower the learning rate" "$(cat crash.err)"
check_equal "no score that scripts would take" 0 "$(grep -c '^val_bpb' <<<"$seen")"

cat >columns.py <<'END'
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1]), delimiter="\t"))
for row in rows:
    assert len(row["commit"]) == 7 and "\t" not in row["description"], row
    assert (float(row["val_bpb"]) > 0) == (row["status"] != "crash"), row
    float(row["memory_gb"])
print(*(f'{row["status"]}:{row["description"]}' for row in rows), sep=", ")
END
check_equal "five columns" "keep:baseline base.toml, keep:faster embedding, discard:nothing.toml, crash:crash.toml" \
  "$(python3 columns.py log/results.tsv)"
check_contains "the list begins with the best" "| $id" "$("$mulligan" try --list --log log | sed -n 3p)"
check_contains "and says what chance keeps" "1 of 2 tested variants were kept; if none had an effect, 0.07 would be kept by chance" \
  "$("$mulligan" try --list --log log)"
check_equal "the page" "$work/log/tries.html" "$("$mulligan" try --page --log log)"
check "is well-formed" python3 -c 'import re, sys, xml.etree.ElementTree as t; t.fromstring(re.sub("^<!DOCTYPE html>", "", open("log/tries.html").read()))'
check_contains "tells of a try under the pointer" "<title>$id keep: faster embedding (" "$(cat log/tries.html)"
check_equal "all as JSON" 4 "$("$mulligan" try --list --log log --json | python3 -c 'import json, sys; print(len(json.load(sys.stdin)["tries"]))')"

# Damage and change.
cp log/results.tsv sound.tsv
printf 'abc\t1.5\n' >>log/results.tsv
cp log/results.tsv damaged.tsv
refused "a damaged table" 3 "results.tsv', line 6, is not a row of 10 columns" better
check "the damaged table stays" cmp log/results.tsv damaged.tsv
rm log/results.tsv
try better --quiet >rebuilt.txt
check_contains "without it the tries are still known" "was tried before" "$(cat rebuilt.txt)"
cp sound.tsv log/results.tsv
cp -r data data_before
rm -r data && "$mulligan" prepare corpus --out data --vocab-size 512 --validation-fraction 0.2 >prepare.log
refused "changed data" 2 "were run with another data (baseline" better
rm -r data && mv data_before data
log=bad check_refused "a base that crashes" 1 "the base 'crash.toml' fails with seed 1, so nothing was tried: step" \
  try base.toml --base crash.toml --log bad
check "is no try" test ! -e bad/results.tsv

# A signal; meanwhile the folder is locked. What goes on ends as what was not disturbed.
begin late try better.toml --base base.toml --log late --note "faster embedding"
wait_until compgen -G 'late/runs/*/seed_3/metrics.jsonl' >/dev/null
check_refused "two at once" 2 "is in use by" try better.toml --base base.toml --log late
check_code "SIGTERM: exit code" 4 end_by TERM
check_contains "SIGTERM: one sentence" "stopped by SIGTERM; the same command goes on" "$(cat late.err)"
log=late try better --note "faster embedding" --quiet >late.txt
check_equal "the same command goes on" 0 $?
check_equal "and ends with the same scores" "$(cut -f 1,2,4-8 log/results.tsv | sed -n 2,3p)" "$(cut -f 1,2,4-8 late/results.tsv | sed -n 2,3p)"

# Far worse than the base: not run to its end.
sed 's/^steps = 8/steps = 120/; s/^lr = .*/lr = 0.01/; s/^name = .*/threads = 1/' base.toml >long.toml
printf 'extends = "long.toml"\n[optimizer.matrices]\nlr = 2.0\n[optimizer.embedding]\nlr = 3.0\n' >worse.toml
see "an early end: exit code" 10 "$mulligan" try worse.toml --base long.toml --log long --quiet
check_contains "says where, and by how much" "discard (ended at 25 % of the budget: training loss" "$seen"
check "was not run to its end" test -z "$(compgen -G 'long/runs/*/seed_1/result.json' | sed -n 2p)"
