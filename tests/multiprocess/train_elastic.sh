#!/usr/bin/env bash
# torchrun starts a training again when a machine comes or goes, and does not count that as a restart; machines that came later have
# counted fewer restarts than the others. The run goes on from its own checkpoints all the same, and no other job's run is touched.
# This script is the agent: as torchrun does, it gives its ranks a run's name that other jobs may use again.
source "$(dirname "${BASH_SOURCE[0]}")/ranks.bash"
make_subject
long=(--set run.determinism=world --set train.steps=300 --set checkpoint.every_steps=20)

# attempt COUNT_0 COUNT_1 DIRECTORY ARGUMENT...: two ranks in the background, whose agents have counted so many restarts.
attempt() {
  local counts=("$1" "$2") directory=$3 number port
  shift 3
  port=$(free_port)
  processes=()
  for number in 0 1; do
    env TORCHELASTIC_RUN_ID=job TORCHELASTIC_RESTART_COUNT="${counts[number]}" RANK=$number WORLD_SIZE=2 LOCAL_RANK=$number \
      LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT="$port" \
      "$mulligan" train run.toml --set run.directory="$directory" "${long[@]}" "$@" >rank.$number 2>&1 &
    processes+=($!)
  done
}
# lose_rank DIRECTORY STEP: kills one rank after that step.
lose_rank() {
  wait_until made_steps "$1" $(($2 + 1))
  kill -KILL "${processes[1]}"
  end_ranks
}

check "two ranks train undisturbed" train_ranks 2 straight "${long[@]}"
expected=$(weights straight)

attempt 0 0 lost
lose_rank lost 20
attempt 0 0 lost
ranks_end "the same count: it goes on" "0 0"
check_equal "to the same weights" "$expected" "$(weights lost)"
check_contains "from its checkpoint" "resumed from" "$(cat rank.0)"
check_contains "the restart is counted" '"restarts": 1' "$(cat lost/result.json)"

attempt 0 0 replaced
lose_rank replaced 20
attempt 0 0 replaced --overwrite
ranks_end "with --overwrite: it goes on" "0 0"
check_contains "its checkpoints are kept" "resumed from" "$(cat rank.0)"
check_equal "to the same weights, too" "$expected" "$(weights replaced)"

attempt 1 1 parted
lose_rank parted 20
attempt 2 0 parted
ranks_end "counts that differ between agents: they meet" "0 0"
check_equal "and end with the same weights" "$expected" "$(weights parted)"
check_contains "the most restarts count" '"restarts": 2' "$(cat parted/result.json)"

# A job of the same name, of other agents: a shell between, without the variable, is another.
attempt 0 0 other
lose_rank other 20
before=$(cd other/checkpoints && find . -type f -exec sha256sum {} + | sort)
export -f attempt end_ranks free_port
export mulligan root
bash -c "$(declare -p long); attempt 1 1 other; end_ranks; echo \"\${codes[*]}\" >other.codes"
check_equal "another job of that name is refused" "2 2" "$(sed 's/5/2/' other.codes)"
check_contains "in a sentence" "holds checkpoints of a run" "$(cat rank.0)"
check_equal "and nothing is changed" "$before" "$(cd other/checkpoints && find . -type f -exec sha256sum {} + | sort)"
