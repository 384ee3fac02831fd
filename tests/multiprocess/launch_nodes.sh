#!/usr/bin/env bash
# mulligan launch on several nodes, each of them here a launcher of its own on the loopback, with shell scripts as ranks:
# they meet, stop and restart together and end alike.
source "$(dirname "${BASH_SOURCE[0]}")/ranks.bash"
make_act
long="sleep 60 & trap 'kill %1; exit 4' TERM; wait"
export MULLIGAN_SECRET=of-this-test
# A port of this process's own, and 17 after it.
first_port=$((20000 + $$ % 1000 * 20))

# node NUMBER OPTION...: starts the launcher of that node in the background.
node() {
  local number=$1
  shift
  "$mulligan" launch --nnodes 2 --nproc-per-node 2 --node-rank "$number" --rdzv-endpoint "127.0.0.1:$first_port" \
    --rdzv-id lesson --log-dir logs "$@" -- ./act.sh >node_$number.out 2>node_$number.err &
  processes[number]=$!
}
# both WHAT CODE OPTION...: two nodes, which both end with that exit code and the same sentence.
both() {
  local what=$1 code=$2 number
  shift 2
  rm -f said_*
  first_port=$((first_port + 20))
  node 0 "$@"
  node 1 "$@"
  for number in 0 1; do
    check_code "$what: exit code of node $number" "$code" wait "${processes[number]}"
  done
  sentence=$(grep -h '^mulligan: ' node_0.err)
  check_equal "$what: both say the same" "$sentence" "$(grep -h '^mulligan: ' node_1.err)"
}

both "all is well" 0
for rank in 0 1 2 3; do
  check_equal "rank $rank: variables" "0 127.0.0.1:$((first_port + 1)) $rank/4 $((rank % 2))/2 $((rank / 2))" "$(cat said_$rank)"
done
RANK_0=$long RANK_1=$long RANK_3="exit 7" RANK_2=$long both "a rank of node 1 fails" 7
check_contains "a rank of node 1 fails: named" "rank 3 on $(uname -n) failed with exit code 7" "$sentence"
RANK_3='((MULLIGAN_RESTART_COUNT == 2)) || exit 1' RANK_0='((MULLIGAN_RESTART_COUNT == 2)) || sleep 60' both "two restarts" 0 --max-restarts 2
check_equal "two restarts: on both nodes" "0 1 2 0 1 2 0 1 2 0 1 2 " "$(cut -d' ' -f1 said_? | tr '\n' ' ')"

# A signal to one launcher stops all ranks.
first_port=$((first_port + 20))
export RANK_0=$long RANK_1=$long RANK_2=$long RANK_3=$long
begin() {
  rm -f said_*
  first_port=$((first_port + 20))
  node 0
  node 1
  for number in 0 1 2 3; do wait_until test -e said_$number; done
  sleep 0.3
}
begin
kill -TERM "${processes[1]}"
for number in 1 0; do
  check_code "SIGTERM to node 1: exit code of node $number" 4 wait "${processes[number]}"
  check_contains "SIGTERM to node 1: node $number says so" "stopped by SIGTERM" "$(grep '^mulligan: ' node_$number.err)"
done
# A launcher that is killed ends the run on the other node, in both directions.
for killed in 1 0; do
  begin
  kill -KILL "${processes[killed]}"
  wait "${processes[killed]}" 2>/dev/null
  check_code "node $killed is killed: exit code of the other" 5 wait "${processes[1 - killed]}"
  check_contains "node $killed is killed: the other names it" "rank $killed" "$(grep '^mulligan: ' node_$((1 - killed)).err)"
done
unset RANK_0 RANK_1 RANK_2 RANK_3

# What cannot be one run is refused on both.
first_port=$((first_port + 20))
node 0 --max-restarts 1
node 1 --max-restarts 2
for number in 0 1; do
  check_code "other options: exit code of node $number" 2 wait "${processes[number]}"
  check_contains "other options: node $number says so" "give all nodes the same" "$(grep '^mulligan: ' node_$number.err)"
done
first_port=$((first_port + 20))
rm node_0.err  # the one before has said it, too
node 0
wait_until grep -qs "meets 1 other" node_0.err
kill -INT "${processes[0]}"
check_code "a signal while a node is missing: exit code" 4 wait "${processes[0]}"
