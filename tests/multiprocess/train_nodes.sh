#!/usr/bin/env bash
# Training on several machines, which are network namespaces here: the numbers of one process for any number of nodes (of ranks on one:
# train_ranks.sh), before and after quantisation and test-time training; a cable that is cut and disks that are full in the midst of training.
# MULLIGAN_LONG_TESTS=1: over 50 steps.
set -uo pipefail
[[ $0 == /* ]] || exec "$PWD/$0"
source "$(dirname "$0")/namespaces.bash"
enter_namespaces "training on several machines"
add_nodes 3
source "$(dirname "${BASH_SOURCE[0]}")/ranks.bash"
make_subject
record_sections | sed 's/context_tokens = 128/context_tokens = 64/; s/chunk_tokens = 64/chunk_tokens = 32/; s/document_fraction.*/document_fraction = 0.5/' >>run.toml
export MULLIGAN_SECRET=of-this-test
steps=$(amount 10 50)

# start_ranks DIRECTORY NODES [ARGUMENT...]: one rank on each of the nodes named, in order ("0 0 1"); processes[], output in rank.R.
# `before` is what a rank's machine does first: shell words, with $RANK.
before=:
start_ranks() {
  local directory=$1 node number=0 local_rank earlier
  local -a nodes=($2)
  shift 2
  processes=()
  for node in "${nodes[@]}"; do
    local_rank=0
    for ((earlier = 0; earlier < number; ++earlier)); do [[ ${nodes[earlier]} != "$node" ]] || local_rank=$((local_rank + 1)); done
    ip netns exec "node$node" env RANK=$number WORLD_SIZE=${#nodes[@]} LOCAL_RANK=$local_rank \
      LOCAL_WORLD_SIZE="$(tr ' ' '\n' <<<"${nodes[*]}" | grep -c "^$node$")" MASTER_ADDR=10.77.0.1 MASTER_PORT=29500 MULLIGAN_RUN_ID="$directory" \
      bash -c "$before"'; "$@"; code=$?; '"${after:-:}"'; exit $code' rank \
      "$mulligan" train run.toml --set run.directory="$directory" --set train.steps="$steps" "$@" >"rank.$number" 2>&1 &
    processes+=($!)
    number=$((number + 1))
  done
}
# nodes_train DIRECTORY NODES [ARGUMENT...]: all of them succeed.
nodes_train() {
  start_ranks "$@"
  end_ranks
  [[ " ${codes[*]} " == *[!\ 0]* ]] || return 0
  tail -n 3 rank.*
  return 1
}
# after_training RUN: what quantisation and test-time training make of it.
after_training() {
  "$mulligan" quantize "$1" >"$1.out" 2>&1 && "$mulligan" ttt "$1/artifact.mulligan" --output "$1" >>"$1.out" 2>&1 || tail -n 3 "$1.out"
  python3 -c '
import json, sys
for stage in json.load(open(sys.argv[1] + "/ledger.json"))["stages"]:
    for name, score in stage["scores"].items(): print(name, repr(score["val_bpb"]))' "$1"
}

world=(--set run.determinism=world)
check "one process trains $steps steps" nodes_train alone "0" "${world[@]}"
check_equal "which is so many losses" "$steps" "$(losses alone | wc -l)"
scores=$(after_training alone)
sed 's/^/# /' <<<"$scores"
check_true "which is scored before and after quantisation and test-time training" "$(wc -l <<<"$scores") >= 3"
for nodes in "0 1" "0 0 1 1" "0 0 1 2"; do
  run=on_${nodes// /_}
  check "ranks on nodes $nodes train" nodes_train "$run" "$nodes" "${world[@]}"
  check_equal "ranks on nodes $nodes: the losses and weights of one process, to the bit" "$(trained alone)" "$(trained "$run")"
  [[ $nodes != "0 1" && $nodes != "0 0 1 2" && -z ${MULLIGAN_LONG_TESTS:-} ]] ||
    check_equal "ranks on nodes $nodes: its scores after quantisation and test-time training" "$scores" "$(after_training "$run")"
  check_equal "ranks on nodes $nodes: counted in the result" "$(wc -w <<<"$nodes") $(tr ' ' '\n' <<<"$nodes" | sort -u | wc -l)" \
    "$(json "$run/result.json" ranks) $(json "$run/result.json" nodes)"
done

# Faults in the midst of training.
steps=100000
log=(--set train.log_every=1 --set checkpoint.at_end=false)
export MULLIGAN_INTERFACE=eth0
start_ranks cut "0 0 1 2" "${log[@]}" --set checkpoint.every_steps=5
wait_until made_steps cut 30
check_equal "rank 0 listens at the chosen interface alone" 01004D0A:733C \
  "$(ip netns exec node0 cat /proc/net/tcp /proc/net/tcp6 | awk '$4 == "0A" && $2 ~ /:733C$/ { print $2 }')"
unset MULLIGAN_INTERFACE
ip link set wire1 down
ranks_end "a cable is cut: exit codes" "5 5 5 5"
for number in 0 1 3; do
  check_contains "a cable is cut: rank $number names the rank on the other side" "rank 2 (" "$(tail -n 1 rank.$number)"
  check_contains "a cable is cut: rank $number says that it was lost" "was lost: it" "$(tail -n 1 rank.$number)"
done
check_contains "a cable is cut: the rank on the other side has lost rank 0" "rank 0 (" "$(tail -n 1 rank.2)"
ip link set wire1 up
check "a cable is cut: the checkpoint is whole" "$mulligan" checkpoint verify cut

# full WHAT RANK DIRECTORY KILOBYTES TEXT ARGUMENT...: that rank's run directory lies on a disk of its own, so small.
full() {
  local what=$1 full_rank=$2 directory=$3 size=$4 text=$5 number
  shift 5
  mkdir "$directory"
  before="[[ \$RANK != $full_rank ]] || mount -t tmpfs -o size=${size}k tmpfs $directory"
  after="[[ \$RANK != $full_rank ]] || { find $directory -mindepth 1 -printf '%P\n' | sort >listed; cp -r $directory/. copied; }"
  mkdir -p copied
  start_ranks "$directory" "0 1" "${log[@]}" "$@"
  end_ranks
  check_equal "$what: it ends with 1, the other one with 5" "1 5" "${codes[full_rank]} ${codes[1 - full_rank]}"
  for number in 0 1; do
    check_contains "$what: rank $number says what" "$text" "$(tail -n 1 rank.$number)"
    check_contains "$what: rank $number says why" "No space left on device" "$(tail -n 1 rank.$number)"
  done
  check_contains "$what: the other one names it" "rank $full_rank (" "$(tail -n 1 rank.$((1 - full_rank)))"
  check_equal "$what: no temporary files are left" "" "$(grep -F .tmp. listed)"
  before=: after=:
}
# Which of the two meets the end of the disk depends on the lengths of their lines.
full "the first rank's log and metrics fill its disk" 0 metrics_full 160 "'metrics_full/" --set checkpoint.every_steps=0
rm -rf copied
full "a checkpoint does not fit the first rank's disk" 0 checkpoint_full 600 "checkpoint" --set checkpoint.every_steps=5 --set train.log_every=1000
check "a checkpoint does not fit the first rank's disk: the one before is whole" "$mulligan" checkpoint verify copied
rm -rf copied
full "another rank's log fills its disk" 1 log_full 64 "the log 'log_full/ranks/0001.log' cannot be written" --set checkpoint.every_steps=0
