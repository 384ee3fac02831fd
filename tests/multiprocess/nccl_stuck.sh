#!/usr/bin/env bash
# Training ends on both ranks in bounded time if a transfer over NCCL does not end, on one of two ranks or on both, or if a device
# hangs before the transfer. The verdict names the rank where that can be known. Library, faults and driver are stubs.
source "$(dirname "${BASH_SOURCE[0]}")/ranks.bash"
make_subject
export MULLIGAN_STUCK_SECONDS=8

faulty behind "rank=1 after=20 hangs=2" ""
faulty within "rank=1 after=120 hangs=1" ""
# Without checkpoints: the others are patient with a rank that saves one.
faulty device "" "1 1200" --set checkpoint.every_steps=0
wait
stuck behind "a transfer that has ended on rank 0 alone" 1
# Who of those that wait in one transfer keeps the others waiting is known only where its host has come less far.
stuck within "a transfer that ends on neither" 1 run
# Its own process ends by force: nothing ends what its device does.
stuck device "the device of rank 1 hangs" 1
