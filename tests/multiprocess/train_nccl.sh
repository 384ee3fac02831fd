#!/usr/bin/env bash
# Ranks with an emulated cuda device each, over nccl and over gloo. The library and the driver of nccl are stubs that work on the
# CPU; its own code is what runs on GPUs (streams, events, groups). Over gloo the host carries what the device has. The numbers are
# those of one process.
source "$(dirname "${BASH_SOURCE[0]}")/ranks.bash"
make_subject
world=(--set run.determinism=world)

# launched RUN OPTION...: two ranks, started by mulligan, train into that run directory.
launched() {
  local run=$1
  shift
  "$mulligan" launch --nproc-per-node 2 --rdzv-id "train_nccl_$$_$run" --log-dir "logs_$run" -- \
    train run.toml --set run.directory="$run" "$@"
}
# communicator RUN: the plugin that a run's result names.
communicator() { python3 -c '
import json, sys
print(*[p["name"] for p in json.load(open(sys.argv[1] + "/result.json"))["plugins"] if p["kind"] == "communicator"])' "$1"; }

check "one process trains on the emulated device" train_ranks 1 alone "${emulated[@]}" "${world[@]}"
check "two train over nccl" launched nccl "${over_nccl[@]}" "${world[@]}"
check_equal "by that plugin" "nccl" "$(communicator nccl)"
check_equal "in world mode they have the losses and weights of one, to the bit" "$(trained alone)" "$(trained nccl)"
check_equal "there are no losses of nothing" 3 "$(losses nccl | wc -l)"

check "two train over gloo" launched gloo "${emulated[@]}" "${world[@]}"
check_equal "which is what a device without a stream gets" "gloo" "$(communicator gloo)"
check_equal "in world mode they have the losses and weights of one, to the bit" "$(trained alone)" "$(trained gloo)"

# Not in world mode: the library adds, and banks are cut.
check "one process trains" train_ranks 1 plain_alone "${emulated[@]}"
check "two train with the sums of nccl" launched plain "${over_nccl[@]}"
check_true "their losses agree" "$(largest_difference plain plain_alone) <= 1e-5"
check_equal "all of them" 3 "$(losses plain | wc -l)"
