#!/usr/bin/env bash
# A transfer over NCCL that does not end, on one of two ranks or on both, and a device that hangs before it end training on both, in
# bounded time, with a verdict that names the rank where that can be known. Library, faults and driver are the stand-ins.
# shellcheck source=tests/end_to_end/cli_checks.bash
source "$(dirname "${BASH_SOURCE[0]}")/../end_to_end/cli_checks.bash"
# shellcheck source=tests/multiprocess/ranks.bash
source "$root/tests/multiprocess/ranks.bash"
make_subject
export MULLIGAN_STUCK_SECONDS=8

faulty behind "rank=1 after=20 hangs=2" ""
faulty within "rank=1 after=120 hangs=1" ""
# Without checkpoints: the others are patient with a rank that saves one.
faulty device "" "1 1200" --set checkpoint.every_steps=0
wait
ended behind "a transfer that has ended on rank 0 alone" "5 1" "rank 1 ("
# Nobody can know who of those that wait in one transfer keeps the others waiting.
ended within "a transfer that ends on neither" "5 5" "the run is stuck: nothing has moved for"
# Its own process ends by force: nothing ends what its device does.
ended device "the device of rank 1 hangs" "5 1" "rank 1 ("
check_contains "the device of rank 1 hangs: rank 0 says how" "it has not moved for" "$(tail -n 1 device/rank.0)"
finish
