#!/usr/bin/env bash
# What happens to one rank of a training ends it on all, in bounded time, with a verdict that names the rank; and what is started
# again ends with the weights of a run that nothing happened to.
source "$(dirname "${BASH_SOURCE[0]}")/ranks.bash"
make_subject
long=(--set run.determinism=world --set train.steps=400 --set train.log_every=1 --set checkpoint.every_steps=20)

check "two ranks train undisturbed" train_ranks 2 undisturbed "${long[@]}"
straight=$(weights undisturbed)

for dead in 1 0; do
  begin_ranks 2 killed_$dead "${long[@]}"
  kill -KILL "${processes[dead]}"
  end_ranks
  check_equal "rank $dead killed: the other ends with 5" "5 137" "${codes[1 - dead]} ${codes[dead]}"
  check_contains "and names it" "rank $dead" "$(tail -n 1 rank.$((1 - dead)))"
  resumes_to "rank $dead killed" killed_$dead "$straight" "${long[@]}"
done

for who in 0 1 both; do
  begin_ranks 2 "stopped_$who" "${long[@]}"
  if [[ $who == both ]]; then kill -TERM "${processes[@]}"; else kill -TERM "${processes[$who]}"; fi
  ranks_end "SIGTERM to $who: both end with 4" "4 4"
  for number in 0 1; do
    check_contains "SIGTERM to $who: rank $number names the checkpoint" "the checkpoint is 'stopped_$who/checkpoints/step_" \
      "$(tail -n 1 rank.$number)"
  done
  resumes_to "SIGTERM to $who" "stopped_$who" "$straight" "${long[@]}"
done

# Before the first step. Another configuration: train_refusals.sh.
mkdir bad && cp data/* bad/ && shard=$(ls bad/*_train_*.bin | head -n 1)
printf '\377\377' | dd of="$shard" bs=1 seek=5000 conv=notrunc status=none
port=$(free_port)
be_rank 1 2 "$port"
"${rank[@]}" train run.toml --set run.directory=damaged --set data.train=bad >rank.1 2>&1 &
be_rank 0 2 "$port"
"${rank[@]}" train run.toml --set run.directory=damaged >rank.0 2>&1
code=$?
wait $!
check_equal "bad data on rank 1: it ends with 3, rank 0 with 5" "3 5" "$? $code"
check_contains "rank 0 says whose" "rank 1" "$(tail -n 1 rank.0)"

for command in "quantize undisturbed" "generate undisturbed"; do
  be_rank 0 2 20000
  check_equal "$command by two ranks is refused" 2 "$("${rank[@]}" $command >refused 2>&1; echo $?)"
  check_contains "$command: in a sentence" "is the work of one process" "$(cat refused)"
done
