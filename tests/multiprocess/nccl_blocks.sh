#!/usr/bin/env bash
# A call into NCCL that never returns, on one of two ranks, on both, or in a process alone. All processes end within the promised
# seconds, with a verdict if there is a rank to tell it, also after SIGTERM. Library and driver are stubs.
source "$(dirname "${BASH_SOURCE[0]}")/ranks.bash"
make_subject
export MULLIGAN_STUCK_SECONDS=8

faulty group "rank=1 after=20 blocks=1" ""
faulty groups "after=20 blocks=1" ""
faulty state "rank=1 after=20 blocks=2" ""
# The abort is asked for by the verdict on a transfer that does not end.
faulty abort "rank=1 after=120 hangs=1 blocks=3" ""
faulty destroy "blocks=4" "" --set train.steps=5

# alone NAME FAULT SIGNAL: a process alone, which makes no transfers, but a communicator all the same; in the background, in a folder
# of that name. SIGNAL is sent to it when it is about to train, or is in the first call; 0 is none.
alone() {
  mkdir "$1"
  (
    cd "$1" && ln -s ../data ../run.toml .
    be_rank 0 1 1
    MULLIGAN_STUB_NCCL=$2 "${rank[@]}" train run.toml --set run.directory=run "${tiny_over_nccl[@]}" --set train.steps=5 >rank.0 2>&1 &
    processes=($!)
    wait_until grep -qs '^training: ' rank.0
    sleep 1
    kill -"$3" "${processes[0]}"
    end_ranks
    echo "${codes[*]}" >codes
  ) 2>/dev/null &
}
alone behind blocks=4 0
MULLIGAN_FIRST_STEP_SECONDS=8 alone before blocks=2 0
# Before its first step it has ten minutes; who is told to stop has less.
alone told blocks=2 TERM
wait
stuck group "ncclGroupEnd does not return on rank 1" 1
stuck groups "ncclGroupEnd does not return on both" 0 1 run
stuck state "ncclCommGetAsyncError does not return on rank 1" 1
# The transfer ends on neither; that of rank 1 is the one that hangs.
stuck abort "ncclCommAbort does not return" 1 run
stuck destroy "ncclCommDestroy does not return" 0 1 run
ended_alone() { # ended_alone NAME WHAT CODE TEXT
  check_equal "one process alone, $2: exit code" "$3" "$(cat "$1/codes")"
  check_contains "one process alone, $2: it says so" "$4" "$(tail -n 2 "$1/rank.0")"
}
ended_alone behind blocks=4 1 "its communicator does not return from a call"
ended_alone before blocks=2 1 "its communicator does not return from a call"
ended_alone told "blocks=2, SIGTERM" 4 "SIGTERM"
