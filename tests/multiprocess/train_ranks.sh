#!/usr/bin/env bash
# Training by several processes on this machine, started by variables as a launcher sets them: the same numbers as one
# process, one run directory, stops and resumes with another number of ranks.
source "$(dirname "${BASH_SOURCE[0]}")/ranks.bash"
make_subject

world=(--set run.determinism=world)

check "one process trains" train_ranks 1 alone "${world[@]}"
check "two processes train" train_ranks 2 two "${world[@]}"
check "four processes train" train_ranks 4 four "${world[@]}"
for run in two four; do
  check_equal "in world mode $run have the losses and weights of one, to the bit" "$(trained alone)" "$(trained $run)"
  check_equal "and its score" "$(score alone)" "$(score $run)"
done
check_equal "there are no losses of nothing" 12 "$(losses alone | wc -l)"
check_contains "the others have a log of their own" "rank 3 of 4" "$(cat four/ranks/0003.log)"
check_equal "and nothing else" "0001.log 0002.log 0003.log" "$(ls four/ranks | xargs)"
check_equal "the first rank alone speaks" 1 "$(grep -c "run directory  " train_4.out)"

check "one process replaces a run of four" train_ranks 1 four "${world[@]}" --overwrite
check_equal "whose logs of ranks are gone" "no" "$([[ -e four/ranks ]] && echo yes || echo no)"

# Not in world mode: the last bits of sums differ.
check "two processes train with the sums of gloo" train_ranks 2 plain
check "one as well" train_ranks 1 plain_alone
check_true "their losses agree" "$(largest_difference plain plain_alone) <= 1e-5"
check "and two that share no update" train_ranks 2 ddp --set parallel.strategy=ddp
check_true "have these losses, too" "$(largest_difference ddp plain_alone) <= 1e-5"

# 1 -> 4 -> 2 ranks, each stopped by a checkpoint at its last step.
check "four steps by one" train_ranks 1 moved "${world[@]}" --set train.steps=4
rm -f moved/result.json
check "four more by four" train_ranks 4 moved "${world[@]}" --set train.steps=8 --resume
rm -f moved/result.json
check "and four by two" train_ranks 2 moved "${world[@]}" --resume
check_equal "a run that changed its number of ranks has the losses and weights of one that did not" "$(trained alone)" "$(trained moved)"
