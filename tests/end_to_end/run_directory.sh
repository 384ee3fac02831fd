#!/usr/bin/env bash
# A run directory: what --overwrite replaces and when, one process at a time, leftovers of killed ones, damaged metrics, links,
# strict rules over what really lies there.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

tiny_data --validation-fraction 0.1
record_config "$work/data" >small.toml
# files FOLDER: what lies in it, with its digests; the report is drawn anew after a failure, whose story is kept, too.
files() {
  (cd "$1" && find . -type f ! -name report.html ! -name '*_failed.*' -print0 | LC_ALL=C sort -z | xargs -0 sha256sum)
}
train() { "$mulligan" train small.toml --set train.steps=4 --set run.directory=run "$@"; }

check "a run" train
check "a file of the user's own in the run directory" cp small.toml run/notes.txt
before=$(files run)

# --overwrite checks everything first.
check_refused "--overwrite, data is missing" 3 "/nowhere" train small.toml --set run.directory=run --overwrite \
  --set 'data.train=/nowhere/*.bin'
check_equal "the earlier run is as it was" "$before" "$(files run)"
check_refused "--overwrite, too little memory" 1 "memory" train small.toml --set run.directory=run --overwrite \
  --set model.width=65536 --set model.heads=512 --set model.kv_heads=512
check_equal "the earlier run is as it was again" "$before" "$(files run)"
# A run that fails before it has saved anything puts it back; its own log and metrics stay.
check_refused "--overwrite, a loss that is not finite" 1 "norm" train small.toml --set run.directory=run --overwrite \
  --set optimizer.vectors.lr=1e6 --set optimizer.embedding.lr=1e6 --set optimizer.matrices.plugin=sgd \
  --set optimizer.matrices.lr=1e6 --set train.clip_norm=0.0 --set train.steps=40
check_contains "the failed start's log is kept" "1000000" "$(cat run/log_failed.txt)"
check_equal "and the earlier run is back" "$before" "$(files run)"
# Killed before it has saved anything: the next command puts it back.
begin kill train small.toml --set run.directory=run --overwrite --set train.steps=100000
wait_for run/.replaced/result.json run/metrics.jsonl
end_by KILL
check_refused "a fresh start still finds the earlier run" 2 "finished run" train small.toml --set run.directory=run
check_equal "which is back" "$before" "$(files run)"
# The new run's first checkpoint ends the earlier one.
check "--overwrite" train --overwrite
check_equal "the new run has taken its place" "config.toml log.txt metrics.jsonl notes.txt report.html result.json" \
  "$(cd run && echo config.toml* log.txt* metrics.jsonl* notes.txt* report.html* result.json*)"
check_equal "nothing is left set aside" "" "$(find run -name '.*' ! -name .)"

# Only things of a run are removed.
mkdir -p run/checkpoints/step_00000099
echo precious >run/checkpoints/step_00000099/thesis.txt
check_refused "--overwrite, a foreign folder named like a checkpoint" 2 "thesis.txt" train small.toml --set run.directory=run --overwrite
check_equal "it is still there" precious "$(cat run/checkpoints/step_00000099/thesis.txt)"
rm -r run/checkpoints/step_00000099

# One process at a time.
begin busy train small.toml --set run.directory=busy --set train.steps=100000 --set train.log_every=1 --set checkpoint.every_steps=3
wait_until made_steps busy 7
for arguments in "train small.toml --resume" "train small.toml --overwrite" "train small.toml"; do
  # shellcheck disable=SC2086
  check_refused "a second: $arguments" 2 "process $process on host" $arguments --set run.directory=busy
done
cp run/weights.safetensors busy/
check_refused "a second: quantize" 2 "mulligan train, process $process" quantize busy
check_refused "a second: ttt" 2 "is in use by" ttt busy
check_refused "a second: eval" 2 "is in use by" eval busy
check_refused "a second with the same checkpoints" 2 "is in use by" train small.toml --set run.directory=elsewhere \
  --set checkpoint.directory=busy/checkpoints/../checkpoints --set train.steps=4 --resume
check_code "the first was not disturbed" 4 end_by TERM
check "its checkpoint is sound" "$mulligan" checkpoint verify busy
check_equal "its lock is gone" "" "$(find busy elsewhere -name .lock 2>find.err)"
begin first eval run --set 'eval.mode="sliding"' --set eval.stride=1
wait_for run/.lock
check "two may score one run at once" "$mulligan" eval run
check_refused "but none may replace it meanwhile" 2 "mulligan eval" train small.toml --set run.directory=run --overwrite
end_by TERM

# What killed processes leave goes with the next start.
begin busy train small.toml --set run.directory=busy --set train.steps=100000 --resume
wait_for busy/.lock
host=$(hostname | tr -c 'A-Za-z0-9\n-' _)
touch "busy/metrics.jsonl.tmp.999999999.0.0.$host" "busy/foreign.tmp.999999999.0.0.$host"
mkdir -p busy/checkpoints/.writing_step_00000001
end_by KILL
made=$(find busy/checkpoints -name 'step_*' | sort | tail -n 1)
more=$((10#${made##*_} + 2)) # a resumed run has steps left
check "a run goes on after a kill" "$mulligan" train small.toml --set run.directory=busy --set train.steps=$more --resume \
  --set train.validate_every=2
check_equal "leftovers are gone, foreign files are not" "busy/foreign.tmp.999999999.0.0.$host" \
  "$(find busy -name '*.tmp.*' -o -name '.writing*' -o -name '.lock')"
# The other commands remove them as well.
check "a run to work on" cp -r run leftovers
for arguments in "eval leftovers" "quantize leftovers" "ttt leftovers" "ttt leftovers --set ttt.chunk_tokens=32" "report leftovers"; do
  for name in metrics.jsonl ledger.json report.html artifact.mulligan eval.state; do touch "leftovers/$name.tmp.999999999.7.0.$host"; done
  # shellcheck disable=SC2086
  check "$arguments" "$mulligan" $arguments
  check_equal "nothing of killed processes is left" "" "$(find leftovers -name '*.tmp.*' ! -name 'eval.state*')"
done
check_equal "what a stopped evaluation saved last goes with its score" "" \
  "$("$mulligan" eval leftovers >again.out 2>&1; find leftovers -name '*.tmp.*')"

# Metrics that are damaged, a folder of checkpoints that cannot be read, links.
cp -r busy damaged
sed -i '5s/.*/{"event":"st/' damaged/metrics.jsonl
rm damaged/result.json
sum=$(sha256sum damaged/metrics.jsonl)
check_refused "a damaged line of metrics" 3 "metrics.jsonl:5" train small.toml --set run.directory=damaged --set train.steps=$((more + 1)) --resume
check_equal "the metrics are as they were" "$sum" "$(sha256sum damaged/metrics.jsonl)"
ln -s loop_b loop_a
ln -s loop_a loop_b
check_refused "checkpoints that cannot be read are not none" 1 "symbolic links" train small.toml --set run.directory=other \
  --set checkpoint.directory=loop_a/checkpoints --resume
mkdir linked
echo precious >precious.txt
check "a run to go on with" "$mulligan" train small.toml --set run.directory=linked --set train.steps=2
ln -sf "$work/precious.txt" linked/log.txt
check_refused "a log that is a link" 1 "symbolic link" train small.toml --set run.directory=linked --set train.steps=3 --resume
check_equal "what it leads to is as it was" precious "$(cat precious.txt)"

# The audit log.
sum=$(sha256sum run/weights.safetensors)
for name in weights.safetensors ttt_result.json .lock notes.txt 'a b'; do
  check_refused "ttt.audit = $name" 2 "audit" ttt run --set "ttt.audit=$name"
done
ln -s "$work/precious.txt" run/linked.jsonl
check_refused "ttt.audit is a link" 2 "audit" ttt run --set ttt.audit=linked.jsonl
check_equal "the weights are as they were" "$sum" "$(sha256sum run/weights.safetensors)"
check "ttt.audit = order.jsonl" "$mulligan" ttt run --set ttt.audit=order.jsonl
check "and again" "$mulligan" ttt run --set ttt.audit=order.jsonl

# Strict rules.
strict=(--set ledger.rules=strict)
mkdir -p made_up/framework
check_refused "strict: a made-up source tree" 1 "not the source that this program was built from" quantize run --source made_up "${strict[@]}"
check_refused "strict: no source tree" 3 "/nowhere" quantize run --source /nowhere "${strict[@]}"
check_equal "no artifact is left unbooked" "" "$(ls run/artifact.mulligan 2>/dev/null)"
check "an artifact, code not counted" "$mulligan" quantize run --output "$PWD/run/../run/artifact.mulligan"
check_equal "is booked by whatever path" "$(stat -c %s run/artifact.mulligan)" "$(json run/ledger.json artifact)"
check_refused "strict: a part of the set" 2 "ttt.document_fraction" ttt run/artifact.mulligan --output run "${strict[@]}"
whole=(--set ttt.document_fraction=1 --set ttt.chunk_tokens=128 --set ttt.batch_documents=16)
check_refused "strict: an artifact outside of the ledger" 1 "ledger.artifact_bytes = 1000" ttt run/artifact.mulligan \
  --output alone "${strict[@]}" "${whole[@]}" --set ledger.artifact_bytes=1000
rm run/ledger.json
check_refused "strict: a training that is not booked" 1 "does not book the training" quantize run --source "$root" "${strict[@]}"
# With the run's own settings the score belongs to the run.
check "a run that scores its whole set" train --set run.directory=booked "${whole[@]}"
check "strict: an artifact" "$mulligan" quantize booked --source "$root" "${strict[@]}"
printf x >>booked/artifact.mulligan
check_refused "strict: another artifact than the one that is booked" 1 "bytes of artifact, but 'booked/artifact.mulligan' has" \
  ttt booked/weights.safetensors "${strict[@]}"
