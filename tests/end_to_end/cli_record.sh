#!/usr/bin/env bash
# The second half of a record: train, quantise, score the artifact with test-time training, from the run directory and
# from an empty folder; the ledger over all three commands, and strict rules.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

tiny_data --validation-documents 4
{ record_config "$work/data" 1.0; wide_ledger; } >small.toml # strict rules take no less
check "train" "$mulligan" train small.toml
run=runs/small
check "quantize" "$mulligan" quantize $run --source "$root"
see_all "ttt" 0 "$mulligan" ttt $run/artifact.mulligan --output $run
# The table is the end of the output.
for line in "before quantisation" "after quantisation" "after test-time training" "(train + calibrate)" \
  "(artifact + counted source)" "(ttt_setup + ttt_plain + ttt)"; do
  check_contains "the table has: $line" "$line" "$(sed -n '/^before quantisation/,$p' <<<"$seen")"
done
check_equal "ledger.json keeps the score" "$(score $run/ttt_result.json with_ttt)" \
  "$(score $run/ledger.json 'after test-time training')"
check_equal "ledger.json keeps training's score" "$(json $run/result.json val_bpb)" "$(score $run/ledger.json 'before quantisation')"
check_true "test-time training gains" \
  "$(score $run/ttt_result.json with_ttt) < $(score $run/ttt_result.json without_ttt)"
check_true "ttt_result.json has every batch" "$(grep -c '"queue":' $run/ttt_result.json) > 1"
check_contains "with the norms" '"drift":' "$(cat $run/ttt_result.json)"
check "ttt again" "$mulligan" ttt $run/artifact.mulligan --output $run

# Text: from the run and from its artifact.
say() { "$mulligan" generate "$@" --max-tokens 24 2>notes.txt; }
greedy=$(say $run --prompt "namespace mulligan" --temperature 0)
check_true "generate goes on behind the prompt" "$(LC_ALL=C.UTF-8; [[ "$greedy" == "namespace mulligan"?* ]] && echo 1 || echo 0)"
check_contains "and prints its speed apart from the text" "tokens/s" "$(cat notes.txt)"
drawn=$(say $run --seed 3 --temperature 2)
echo "$drawn" >drawn.txt
check "the text is UTF-8" iconv -f UTF-8 -t UTF-8 -o same.txt drawn.txt
say $run/artifact.mulligan --prompt " " >said.txt
check_equal "from the artifact" 0 $?
check_equal "the prompt stands in front of its continuation, not of a note" 0 \
  "$("$mulligan" generate $run --prompt "namespace mulligan" --max-tokens 4 2>&1 | grep -c 'namespace mulligantext by')"
check_equal "no escape code of a prompt reaches the terminal" 0 \
  "$("$mulligan" generate $run --prompt $'a\e[31mb' --max-tokens 4 2>&1 | grep -c $'\e')"
check_refused "a temperature below zero" 2 "temperature" generate $run --temperature -1

mkdir empty
cp $run/artifact.mulligan data/tokenizer.model data/fineweb_val_*.bin empty/
mv data runs corpus small.toml "$(mktemp -d -p "$work")"
(cd empty && "$mulligan" ttt artifact.mulligan --output found --set 'data.validation=fineweb_val_*.bin' \
  --set data.tokenizer=tokenizer.model >log.txt 2>&1)
check_equal "ttt of the artifact alone, in an empty folder" 0 $?
mv "$work"/tmp.*/* "$work"
check_equal "gives the same val_bpb to the last digit" "$(score $run/ttt_result.json with_ttt)" \
  "$(score empty/found/ttt_result.json with_ttt)"
check_equal "and the same without" "$(score $run/ttt_result.json without_ttt)" "$(score empty/found/ttt_result.json without_ttt)"

strict=(--set ledger.rules=strict)
check "strict rules, every budget kept" "$mulligan" quantize $run --source "$root" "${strict[@]}"
train_seconds=$(json $run/ledger.json train)
check_refused "strict: calibration counts as training" 1 "train + calibrate" quantize $run --source "$root" "${strict[@]}" \
  --set "ledger.train_seconds=$train_seconds"
check_refused "strict: too many bytes" 1 "ledger.artifact_bytes = 1000" quantize $run --source "$root" "${strict[@]}" \
  --set ledger.artifact_bytes=1000
check_refused "strict: scoring takes too long" 1 "ledger.eval_seconds" ttt $run/artifact.mulligan --output $run "${strict[@]}" \
  --set ledger.eval_seconds=0.001
check_contains "ledger.json names the broken budget" "ledger.eval_seconds" "$(sed -n '/"broken"/,/\]/p' $run/ledger.json)"
check_refused "strict: training takes too long" 1 "refused as a record" train small.toml --set run.directory=runs/slow \
  --set train.steps=2 "${strict[@]}" --set ledger.train_seconds=0.0001
check_equal "a refused training has no result.json" "" "$(ls runs/slow/result.json 2>/dev/null)"
