#!/usr/bin/env bash
# Three faults end training on both ranks, with a verdict that names the rank: the NCCL library of one of two ranks fails; it never
# takes what it is given; a rank is killed. A slow library changes nothing. Library, faults and driver are stubs.
source "$(dirname "${BASH_SOURCE[0]}")/ranks.bash"
make_subject

faulty fails "rank=1 after=20 fails=1" ""
faulty slow "rank=1 after=20 slow_milliseconds=100000" "" --set communicator.timeout=3
faulty killed "" ""
faulty broken "rank=1 after=12 breaks=1" "" --set train.steps=3  # in the first transfer of the last step
patient() { MULLIGAN_STUB_NCCL="slow_milliseconds=20" train_ranks 2 patient "${tiny_over_nccl[@]}"; }
check "a library that takes a while changes nothing" patient
check "as quick ones train" train_ranks 2 quick "${tiny_over_nccl[@]}"
check_equal "a library that takes a while changes nothing: the weights" "$(weights quick)" "$(weights patient)"
wait
# Rank 1 aborts its transfers before it tells of its failure, so rank 0 may lose them and tell of that first.
ended fails "the library reports an error on rank 1" "5 1|1 5" "remote process exited or there was a network error"
check_contains "the library reports an error on rank 1: who is told of it names the other" " (" \
  "$(tail -qn 1 fails/rank.0 fails/rank.1 | grep -o 'rank [01] (')"
ended slow "the library never takes what rank 1 sends" "5 1" "NCCL did not take a batch of transfers within 3 s"
check_contains "the library never takes what rank 1 sends: rank 0 names it" "rank 1 (" "$(tail -n 1 slow/rank.0)"
ended broken "the connection breaks in a transfer that was joined" "5 1|1 5" "NCCL reports: remote process exited"
check_equal "the connection breaks: what is made of that transfer is not booked" "1 2" "$(losses broken/run | cut -d' ' -f1 | xargs)"
ended killed "rank 1 is killed" "5 137" "rank 1 ("
