#!/usr/bin/env bash
# Stopping and resuming from the command line, and `mulligan checkpoint`.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

tiny_data --validation-fraction 0.1
small_config "$work/data" >small.toml

for signal in INT TERM; do
  begin stop train small.toml --set train.steps=100000 --set run.directory=stop_$signal
  wait_for stop_$signal/metrics.jsonl
  check_code "SIG$signal: exit code 4" 4 end_by $signal
  check_contains "SIG$signal: the sentence says how to go on" "--resume" "$(cat stop.err)"
  check_equal "SIG$signal: one sentence" 1 "$(wc -l <stop.err)"
  check "SIG$signal: the checkpoint is sound" "$mulligan" checkpoint verify stop_$signal
done
check_refused "train does not run over a checkpoint" 2 "--resume" train small.toml --set run.directory=stop_TERM
step=$(basename stop_TERM/checkpoints/step_*)
step=$((10#${step#step_}))
check "train --resume goes on" "$mulligan" train small.toml --set train.steps=$((step + 2)) --set run.directory=stop_TERM --resume
check_equal "and makes the steps that are left" $((step + 2)) "$(json stop_TERM/result.json steps)"
rm stop_TERM/metrics.jsonl
check "the training goes on without its metrics.jsonl" "$mulligan" train small.toml --set train.steps=$((step + 3)) \
  --set run.directory=stop_TERM --resume
check_refused "--resume: nothing there" 3 "nothere" train small.toml --set run.directory=other --resume nothere
check_refused "--resume and --overwrite exclude each other" 2 "--overwrite" train small.toml --resume --overwrite
(
  trap '' XFSZ
  ulimit -f 200 # blocks of 1024 bytes: the log fits, a checkpoint does not
  "$mulligan" train small.toml --set train.steps=100000 --set run.directory=full --set checkpoint.every_steps=2
) >full.out 2>full.err
check_equal "a full disk stops the run" 1 $?
check_contains "and is named with the file" "tensors.safetensors" "$(cat full.err)"
check_equal "nothing is left of the checkpoint" "" "$(ls -A full/checkpoints)"

check "train with averages" "$mulligan" train small.toml --set run.directory=run --set ema.decay=0.9
seen=$("$mulligan" checkpoint show run)
for text in "step_00000020" "20480 tokens" "[optimizer.matrices] optimizer 'muon'" "master/qo_bank" "ema/qo_bank" "mean of 20 steps [0, 20)"; do
  check_contains "checkpoint show: $text" "$text" "$seen"
done
check_equal "checkpoint diff: itself" "identical" "$("$mulligan" checkpoint diff run run | cut -d: -f1)"
check_refused "checkpoint diff: another run" 1 "differ" checkpoint diff run stop_INT
check "checkpoint export" "$mulligan" checkpoint export run --averaged --out averaged.safetensors
check "the exported averages are the saved weights" "$mulligan" checkpoint diff averaged.safetensors run/weights.safetensors
check "the exported averages can be scored" "$mulligan" eval averaged.safetensors --config small.toml

cat >map.toml <<'TOML'
[[tensor]]
theirs = "layers.{i}.q"
ours = "qo_bank"
slice = 0
repeat = 4
transpose = true
[[tensor]]
theirs = "layers.{i}.o"
ours = "qo_bank"
slice = 4
repeat = 4
TOML
for name in $("$mulligan" checkpoint show run | sed -n 's/^master\/\([^ ]*\) .*/\1/p' | grep -v '^qo_bank$'); do
  printf '[[tensor]]\ntheirs = "their.%s"\nours = "%s"\n' "$name" "$name" >>map.toml
done
check "export under other names" "$mulligan" checkpoint export run --map map.toml --out theirs.safetensors
check "import of them" "$mulligan" checkpoint import theirs.safetensors --map map.toml --config small.toml --out ours.safetensors
check "export without names" "$mulligan" checkpoint export run --out masters.safetensors
check "what went out came back, bit for bit" "$mulligan" checkpoint diff masters.safetensors ours.safetensors
printf 'x' | dd of=run/checkpoints/step_00000020/tensors.safetensors bs=1 seek=5000 conv=notrunc 2>dd.err
check_refused "checkpoint verify: damage" 3 "sha256" checkpoint verify run
