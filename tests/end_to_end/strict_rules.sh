#!/usr/bin/env bash
# Strict rules take the user's own plugins, whose files count as code. They refuse training text that changes under a run, weights of
# another run, and an artifact or weights that are not the run's.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

tiny_data --validation-fraction 0.05
{
  record_config "$work/data" 1.0
  printf '[ledger]\nrules = "strict"\ntrain_seconds = 600\n'
} >strict.toml
plugins=$build/lib/mulligan/plugins

# The start of a run.
warm=(--set train.warmup.steps=60 --set train.warmup.keep_muon_momentum=true --set train.steps=40)
check "a long warm-up, Muon's momentum kept" "$mulligan" train strict.toml "${warm[@]}" --set run.directory=honest
check_refused "weights that another run has trained" 2 "init.from" train strict.toml --set init.from=honest/weights.safetensors \
  --set run.directory=later
mkdir own
cp "$plugins"/mulligan_{doc_lora,muon,cpu}.so own/
own() { printf '%s' "--set $1.path=$work/own/mulligan_$2.so"; }
# shellcheck disable=SC2046
check "plugins of one's own" "$mulligan" train strict.toml --set train.steps=2 --set run.directory=outside \
  $(own optimizer.matrices muon) --set optimizer.matrices.lr=0.002 $(own backend cpu)

# A run that is stopped for a while.
begin stopped train strict.toml --set run.directory=stopped --set train.steps=60
wait_for stopped/metrics.jsonl
kill -STOP $process
sleep 2
kill -CONT $process
check_code "a run that was stopped for a while" 0 wait $process

# Training text that is another once it was looked at: the same file written to, and a link that leads elsewhere.
cp -r data swapped
ln -s "$work/data" linked
for way in swapped linked; do
  begin $way train strict.toml --set run.directory=read_$way --set train.steps=150 --set "data.train=$work/$way/fineweb_train_*.bin"
  wait_for read_$way/metrics.jsonl
  if [[ $way == swapped ]]; then
    dd if=data/fineweb_train_000000.bin of=swapped/fineweb_train_000000.bin conv=notrunc status=none
  else
    cp -r data elsewhere && ln -sfn "$work/elsewhere" linked
  fi
  check_code "training text that was $way while it was read" 1 wait $process
  check_contains "is named" "was changed while the run was reading it" "$(cat $way.err)"
done

# Whose weights they are.
check "the artifact" "$mulligan" quantize honest
check "test-time training" "$mulligan" ttt honest/artifact.mulligan --output honest
cp -r honest copy
cp outside/weights.safetensors copy/
check_refused "weights of another run" 3 "contents of the weights" eval copy
"$mulligan" eval copy --set ledger.rules=open >copy.out 2>&1
check_contains "open rules score them with other settings" "not a score of the run, because of contents of the weights" "$(cat copy.out)"
check_equal "and no score of the run" "" "$(cat copy/evaluations.jsonl 2>none)"
check_refused "nor is their artifact its own" 3 "other weights" quantize copy
"$mulligan" eval honest >own.out 2>&1
check_equal "the run's own are its score" 1 "$(wc -l <honest/evaluations.jsonl)"
"$mulligan" quantize outside --output copy/artifact.mulligan >other.out 2>&1
ours=$(sha256sum copy/ttt_result.json)
check_refused "another artifact" 3 "contents of the artifact" ttt copy/artifact.mulligan
check_refused "wherever its score goes" 3 "contents of the artifact" ttt copy/artifact.mulligan --output elsewhere_scored
cp honest/artifact.mulligan copy/second.mulligan
check_refused "an artifact of another name" 3 "second.mulligan' is not what its run has made" ttt copy/second.mulligan
"$mulligan" quantize outside --output copy/open.mulligan --set ledger.rules=open >other.out 2>&1
cp copy/open.mulligan copy/artifact.mulligan
check_refused "one whose own configuration has open rules" 3 "contents of the artifact" ttt copy/artifact.mulligan
"$mulligan" ttt copy/artifact.mulligan --output copy --set ledger.rules=open >copy.out 2>&1
check_contains "another artifact is a trial" "contents of the artifact" "$(cat copy.out)"
check_equal "and the run's result stays" "$ours" "$(sha256sum copy/ttt_result.json)"
cp honest/ttt_result.json outside/ttt_result.json
check_contains "a result that was copied" "neither the run's nor its artifact" "$("$mulligan" report honest outside 2>&1)"
rm outside/ttt_result.json

# Code that is not the tree's counts whole.
counted() { sed -n 's/^code of an evaluation, compressed source *\([0-9,]*\)$/\1/p' "$1" | tr -d ,; }
check "the tree's code" "$mulligan" quantize honest --source "$root" --output tree.mulligan
"$mulligan" quantize honest --source "$root" --output tree.mulligan >tree.out 2>&1
# shellcheck disable=SC2046
"$mulligan" quantize honest --source "$root" --output own.mulligan $(own ttt.adapters doc_lora) >own.out 2>&1
check_equal "a plugin of one's own is taken" 0 $?
check_contains "and named" "mulligan_doc_lora.so (own file)" "$(cat own.out)"
check_true "it counts with its file" "$(counted own.out) > $(counted tree.out) + 10000"
# shellcheck disable=SC2046
"$mulligan" quantize honest --source "$root" --output both.mulligan $(own ttt.adapters doc_lora) $(own backend cpu) >both.out 2>&1
check_true "and so does a backend" "$(counted both.out) > $(counted own.out) + 100000"
# shellcheck disable=SC2046
check_refused "one that was not counted scores no record" 1 "the code next to the artifact was not counted" ttt honest/artifact.mulligan \
  --output honest $(own backend cpu) --set ledger.artifact_bytes=100000000
