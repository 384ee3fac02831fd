#!/usr/bin/env bash
# SIGKILL at random moments, then --resume: the losses, the accounts and the weights are those of a run that was never
# interrupted, bit for bit. MULLIGAN_KILLS=20 tries as many moments (default 3, long form 20); MULLIGAN_KILL_SEED repeats a try.
# shellcheck source=tests/end_to_end/cli_checks.bash
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

kills=${MULLIGAN_KILLS:-$(amount 3 20)}
seed=${MULLIGAN_KILL_SEED:-$((RANDOM * 32768 + RANDOM))}
RANDOM=$((seed % 32768))
echo "# MULLIGAN_KILL_SEED=$seed"

tiny_corpus corpus
check "prepare" "$mulligan" prepare corpus --out data --vocab-size 512 --validation-fraction 0.1
small_config "$work/data" >small.toml
options=(small.toml --set train.steps=40 --set train.log_every=1 --set checkpoint.every_steps=1)

# step_losses RUN: step and loss of every step line.
step_losses() { sed -n 's/.*"event":"step","step":\([0-9]*\),"loss_nats":\([^,]*\),.*/\1 \2/p' "$1/metrics.jsonl"; }
# loss_account RUN: the block train_loss of result.json.
loss_account() { sed -n '/"train_loss": {/,/^  }/p' "$1/result.json"; }

began=$(date +%s%N)
check "the uninterrupted run" "$mulligan" train "${options[@]}" --set run.directory=straight
milliseconds=$((($(date +%s%N) - began) / 1000000))
check_equal "it reports 40 steps" 40 "$(step_losses straight | wc -l)"

for ((kill_number = 1; kill_number <= kills; ++kill_number)); do
  run=killed_$kill_number
  moment=$((RANDOM * 32768 + RANDOM))
  moment=$((moment % milliseconds))
  "$mulligan" train "${options[@]}" --set run.directory=$run >/dev/null 2>&1 &
  process=$!
  sleep "$((moment / 1000)).$(printf %03d $((moment % 1000)))"
  kill -KILL $process 2>/dev/null
  wait $process 2>/dev/null
  reached=$(ls $run/checkpoints 2>/dev/null | tail -n 1)
  what="killed after $moment of $milliseconds ms (${reached:-no checkpoint})"
  if ! seen=$("$mulligan" train "${options[@]}" --set run.directory=$run --resume 2>&1); then
    flunk "$what: resumes" "$seen"
    continue
  fi
  check_equal "$what: every loss is that of the uninterrupted run" "$(step_losses straight)" "$(step_losses $run)"
  check_equal "$what: so are the sums" "$(loss_account straight)" "$(loss_account $run)"
  check_equal "$what: so is the score" "$(json straight/result.json val_loss_nats)" "$(json $run/result.json val_loss_nats)"
  check "$what: so are the weights" "$mulligan" checkpoint diff straight/weights.safetensors $run/weights.safetensors
  check "$what: so is the last checkpoint" "$mulligan" checkpoint diff straight $run
  rm -rf "$run"
done
finish
