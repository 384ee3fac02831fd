#!/usr/bin/env bash
# mulligan launch on two machines, which are network namespaces here, with real training: the weights of one process; restarts of the
# ranks of both after one was killed; what result, metrics and report say of a run that was restarted.
set -uo pipefail
[[ $0 == /* ]] || exec "$PWD/$0"
source "$(dirname "$0")/namespaces.bash"
enter_namespaces "launchers on several machines"
add_nodes 2
source "$(dirname "${BASH_SOURCE[0]}")/ranks.bash"
make_subject
record_sections >>run.toml
export MULLIGAN_SECRET=of-this-test
options=(--set run.determinism=world --set train.steps=200 --set checkpoint.every_steps=10)
extra=()

# begin RUN LAUNCH_OPTION...: a launcher on each node, with two ranks; launchers[].
begin() {
  local run=$1 node
  shift
  launchers=()
  for node in 0 1; do
    ip netns exec node$node "$mulligan" launch --nnodes 2 --node-rank $node --rdzv-endpoint 10.77.0.1 --nproc-per-node 2 --rdzv-id "$run" \
      --log-dir "logs_$run" "$@" -- train run.toml "${options[@]}" --set run.directory="$run" "${extra[@]}" >"$run.$node.out" 2>"$run.$node.err" &
    launchers+=($!)
  done
}
end() {
  local launcher
  codes=()
  for launcher in "${launchers[@]}"; do
    wait "$launcher"
    codes+=($?)
  done
}
# kill_rank RUN RANK STEPS: kills it once the run has made so many steps.
kill_rank() {
  wait_until made_steps "$1" "$3"
  kill -KILL "$(process_of "$1" "$2")"
}
attempts() { python3 -c '
import json, sys
for line in open(sys.argv[1] + "/metrics.jsonl"):
    event = json.loads(line)
    if event["event"] == "attempt": print(event["ranks"], event["nodes"], event["launcher"], event["restarts"], end="; ")' "$1"; }

check "one process trains" train_ranks 1 alone "${options[@]}"
begin straight
end
check_equal "two nodes of two ranks train" "0 0" "${codes[*]}"
check_equal "to the losses and weights of one process" "$(trained alone)" "$(trained straight)"
check_equal "the result counts them" "4 2 mulligan launch 0" \
  "$(for key in ranks nodes launcher restarts; do json straight/result.json $key; done | xargs)"
check_equal "and so does metrics.jsonl" "4 2 mulligan launch 0; " "$(attempts straight)"
check_contains "and so does the report" "4 ranks on 2 nodes, started by mulligan launch<" "$(cat straight/report.html)"
check_equal "one process has no such line" "" "$(grep -o 'started by' alone/report.html)$(attempts alone)"
check_equal "but the same keys" "1 1 env 0" "$(for key in ranks nodes launcher restarts; do json alone/result.json $key; done | xargs)"

for rank in 3 0; do
  run=killed_$rank
  begin $run --max-restarts 2
  kill_rank $run $rank 50
  end
  check_equal "rank $rank is killed: both launchers end well" "0 0" "${codes[*]}"
  check_contains "rank $rank is killed: its launcher says so" "rank $rank on $(uname -n) was ended by SIGKILL" "$(cat $run.$((rank / 2)).err)"
  check_equal "rank $rank is killed: losses and weights are the same" "$(trained alone)" "$(trained $run)"
  check_equal "rank $rank is killed: metrics.jsonl has both attempts" "4 2 mulligan launch 0; 4 2 mulligan launch 1; " "$(attempts $run)"
done
check_contains "the result counts the restart" '"restarts": 1' "$(cat killed_3/result.json)"
check_contains "the report marks it" "4 ranks on 2 nodes, started by mulligan launch, 1 restart after a failure" "$(cat killed_3/report.html)"
check_contains "and says what it means" "Seconds after the last checkpoint before it are not booked." "$(cat killed_3/report.html)"
check_contains "the log does, too" "warning: the run was restarted 1 time after a failure" "$(cat killed_3/log.txt)"
check_equal "nothing of that where there was none" "" "$(grep -l "after a failure" straight/report.html straight/log.txt)"
check "strict rules take a run that was restarted" "$mulligan" quantize killed_3 --source "$root" --set ledger.rules=strict

# torchrun says it by a variable of its own; after a restart --resume stays.
TORCHELASTIC_RUN_ID=t TORCHELASTIC_RESTART_COUNT=1 RANK=0 WORLD_SIZE=1 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 \
  "$mulligan" train run.toml --set run.directory=torch --set train.steps=6 >torch.out 2>&1
check_equal "a restart by torchrun is marked" "torchrun 1" "$(for key in launcher restarts; do json torch/result.json $key; done | xargs)"
rm torch/result.json
check "it goes on" "$mulligan" train run.toml --set run.directory=torch --resume
check_equal "and stays marked" 1 "$(json torch/result.json restarts)"
