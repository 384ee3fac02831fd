#!/usr/bin/env bash
# mulligan probe ensemble: what it prints, writes and refuses; its score never replaces the run's.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

tiny_data --validation-documents 4
record_config "$work/data" >small.toml
check "train" "$mulligan" train small.toml
run=runs/small
before=$(cat $run/result.json)

see "ensemble" 0 "$mulligan" probe ensemble $run --tokens 900 --set ensemble.members=3 --set ensemble.bits=4 --json figures.json
check_contains "its score has a name of its own" "ensemble_bpb" "$seen"
check_contains "and says so" "no run's val_bpb" "$seen"
check_equal "as many tokens as asked for" 900 "$(json figures.json tokens)"
check_equal "the run keeps it" "$(cat figures.json)" "$(cat $run/ensemble.json)"
check_contains "the report shows it" "ambiguity" "$(cat $run/report.html)"
check_equal "the run's own result is what it was" "$before" "$(cat $run/result.json)"
check_equal "no evaluation of the run is made of it" 0 "$(cat $run/evaluations.jsonl 2>/dev/null | grep -c ensemble)"
"$mulligan" probe ensemble $run --tokens 900 --set ensemble.members=3 --set ensemble.bits=4 --json again.json --quiet >/dev/null
check_equal "the same members again" "$(grep -v seconds figures.json)" "$(grep -v seconds again.json)"
"$mulligan" probe ensemble $run --tokens 900 --set eval.packed_sequences=1 --quiet >/dev/null
check_equal "other settings are not the run's figures" "$(cat again.json | grep -v seconds)" "$(grep -v seconds $run/ensemble.json)"
check "an artifact" bash -c "'$mulligan' quantize $run >/dev/null && '$mulligan' probe ensemble $run/artifact.mulligan --tokens 256 --set ensemble.members=2"

check_refused "no model" 3 "nowhere" probe ensemble nowhere
check_contains "the plugin's keys" "scales" "$("$mulligan" plugins stochastic_rounding)"
check "of two bits, too" "$mulligan" plugins check stochastic_rounding --set bits=2 --set scales=tensor

cp -r "$root/configs" .
if MULLIGAN=$mulligan configs/numerics/ensembles/run --quick >experiment.md 2>experiment.err; then
  check_contains "configs/numerics/ensembles/run --quick" "| 5 |" "$(cat experiment.md)"
  check_equal "it keeps what it printed" "$(cat experiment.md)" "$(cat runs/numerics/ensembles_quick/tables.md)"
  check "of which there is a page" "$mulligan" report --tables runs/numerics --output tables.html
  check_contains "with its table" '>5</td>' "$(cat tables.html)"
else
  flunk "configs/numerics/ensembles/run --quick" "$(cat experiment.md experiment.err)"
fi
