#!/usr/bin/env bash
# Signals at random moments of training at quickstart's size with one thread: every run ends with exit code 4 and a
# checkpoint that verifies (or had not begun), or with 0 when it had finished. MULLIGAN_SIGNALS=300 sends as many (default
# 12); MULLIGAN_KILL_SEED repeats a try; MULLIGAN_SIGNAL_NAMES chooses among which (default: all that stop a run).
# shellcheck source=tests/end_to_end/cli_checks.bash
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

signals=${MULLIGAN_SIGNALS:-$(amount 12 300)}
seed=${MULLIGAN_KILL_SEED:-$((RANDOM * 32768 + RANDOM))}
RANDOM=$((seed % 32768))
read -ra names <<<"${MULLIGAN_SIGNAL_NAMES:-TERM INT HUP XCPU USR1 USR2 ALRM}"
echo "# MULLIGAN_KILL_SEED=$seed"

tiny_corpus corpus
check "prepare" "$mulligan" prepare corpus --out data --vocab-size 1024 --validation-fraction 0.1
options=("$root/configs/quickstart.toml" --set "data.train=data/*_train_*.bin" --set "data.validation=data/*_val_*.bin"
  --set data.tokenizer=data/tokenizer.model --set model.vocabulary=1024 --set run.threads=1 --set train.budget_seconds=600)

declare -A ended
for ((number = 1; number <= signals; ++number)); do
  run=run_$number
  name=${names[RANDOM % ${#names[@]}]}
  "$mulligan" train "${options[@]}" --set run.directory=$run >$run.out 2>$run.err &
  process=$!
  wait_for $run/log.txt # set up; then a random moment of two seconds
  moment=$((RANDOM % 2000))
  sleep "$((moment / 1000)).$(printf %03d $((moment % 1000)))"
  kill "-$name" $process
  wait $process
  code=$?
  ended[$code]=$((${ended[$code]:-0} + 1))
  if ((code != 4)); then
    flunk "SIG$name $moment ms after the set-up ends with exit code 4" "exit code $code: $(cat $run.err)"
  elif ! seen=$("$mulligan" checkpoint verify $run 2>&1); then
    flunk "SIG$name $moment ms after the set-up leaves a sound checkpoint" "$seen"
  fi
  rm -rf "$run"
done
for code in "${!ended[@]}"; do echo "# exit code $code: ${ended[$code]}"; done
check_equal "all of $signals ended with exit code 4" "$signals" "${ended[4]:-0}"
finish
