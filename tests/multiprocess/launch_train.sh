#!/usr/bin/env bash
# mulligan launch with real training: the numbers of one process, restarts from the last checkpoint after a rank was killed or
# stood still, which end with the weights of an undisturbed run, and a stop that --resume continues.
source "$(dirname "${BASH_SOURCE[0]}")/ranks.bash"
make_subject
options=(--set run.determinism=world --set train.steps=200 --set checkpoint.every_steps=10)

# launch RUN LAUNCH_OPTION...: two ranks train into that run directory.
launch() {
  local run=$1
  shift
  "$mulligan" launch --nproc-per-node 2 --rdzv-id "launch_train_$$_$run" --log-dir "logs_$run" "$@" -- \
    train run.toml "${options[@]}" --set run.directory="$run" "${resume[@]}" >"$run.out" 2>"$run.err"
}
resume=()

check_code "two ranks train: exit code" 0 launch straight
check_contains "rank 0 speaks as if it were alone" "val_bpb" "$(cat straight.out)"
check_equal "and the others do not" "" "$(grep '^\[rank' straight.out)"
check "one process trains" train_ranks 1 alone "${options[@]}"
check_equal "in world mode the weights are those of one process" "$(weights alone)" "$(weights straight)"

# A rank is killed at a random moment of the whole run: while ranks meet, prepare, train, save, score. MULLIGAN_KILLS: how often.
seconds=$(json straight/result.json duration_seconds)
kills=${MULLIGAN_KILLS:-$(amount 2 100)}
late=0
for ((number = 1; number <= kills; ++number)); do
  rank=$((number % 2))
  run=killed_$number
  launch $run --max-restarts 2 &
  launcher=$!
  process=
  while [[ -z $process ]] && kill -0 $launcher; do process=$(process_of launch_train_$$_$run $rank); done
  # The first two are killed for certain in the midst of training.
  if ((number <= 2)); then wait_until made_steps $run $((5 + RANDOM % 150)); else sleep "$(awk "BEGIN { print $seconds * $RANDOM / 32768 }")"; fi
  kill -KILL "$process" 2>kill.err || late=$((late + 1)) # it had ended
  check_code "rank $rank killed ($number): the run ends well" 0 wait $launcher
  if [[ ! -s kill.err && -d logs_$run/attempt_1 ]]; then
    check_contains "rank $rank killed ($number): and says what happened" "rank $rank on $(uname -n) was ended by SIGKILL" "$(cat "$run.err")"
  fi
  check_equal "rank $rank killed ($number): losses and weights are those of the undisturbed run" "$(trained straight)" "$(trained $run)"
  check_equal "rank $rank killed ($number): and the score" "$(score straight)" "$(score $run)"
  check_equal "rank $rank killed ($number): no process is left" "" "$(files_of launch_train_$$_$run)"
  check_equal "rank $rank killed ($number): no temporary files are left" "" "$(find $run -name '.*' -not -name '.lock' -printf '%f ')"
  ((number <= 2)) || rm -rf "$run" "logs_$run"
done
check_true "most of the kills came in time ($late of $kills did not)" "$late <= $kills / 4"

launch frozen --max-restarts 1 &
launcher=$!
wait_until made_steps frozen 20
kill -STOP "$(process_of launch_train_$$_frozen 1)"
check_code "a rank stands still: the run ends well" 0 wait $launcher
check_equal "a rank stands still: the weights are those of the undisturbed run" "$(weights straight)" "$(weights frozen)"

"$mulligan" launch --nproc-per-node 2 --log-dir logs_stopped -- train run.toml "${options[@]}" --set run.directory=stopped >stopped.out 2>stopped.err &
launcher=$!
wait_until made_steps stopped 20
kill -TERM $launcher
check_code "SIGTERM to the launcher: exit code" 4 wait $launcher
check "SIGTERM to the launcher: a checkpoint is there" "$mulligan" checkpoint verify stopped
resume=(--resume)
check_code "--resume goes on: exit code" 0 launch stopped
check_equal "--resume goes on: the weights are those of the undisturbed run" "$(weights straight)" "$(weights stopped)"
resume=()

"$mulligan" launch --nproc-per-node 2 --max-restarts 2 --log-dir logs_wrong -- train run.toml --set model.layers=x >wrong.out 2>wrong.err
check_equal "a wrong configuration: exit code, without a restart" 2 $?
check_equal "a wrong configuration: one attempt" attempt_0 "$(ls logs_wrong)"
