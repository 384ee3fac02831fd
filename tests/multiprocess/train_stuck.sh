#!/usr/bin/env bash
# A rank that lives and beats, but stands still in the midst of training, and one that drifts away from the others: both end the run on
# all ranks, in bounded time, with a sentence that names the rank, and what was saved before goes on to the weights of a run that
# nothing happened to.
source "$(dirname "${BASH_SOURCE[0]}")/ranks.bash"
make_subject
long=(--set run.determinism=world --set train.steps=400 --set train.log_every=1 --set checkpoint.every_steps=20
  --set schedule.plugin=faulty --set schedule.path="$build/tests/multiprocess/mulligan_faulty.so")
export MULLIGAN_STUCK_SECONDS=6

check "two ranks train undisturbed" train_ranks 2 undisturbed "${long[@]}"
straight=$(weights undisturbed)

for stuck in 0 1; do
  begin_ranks 2 stuck_$stuck "${long[@]}"
  touch hang.$stuck
  end_ranks
  other=$((1 - stuck))
  check_equal "rank $stuck stands still: the other one ends with 5" 5 "${codes[other]}"
  check_equal "rank $stuck stands still: it is ended itself" 1 "${codes[stuck]}"
  for number in 0 1; do
    check_contains "rank $stuck stands still: rank $number says so" "rank $stuck (" "$(tail -n 1 rank.$number)"
    check_contains "rank $stuck stands still: rank $number says what" "is stuck: it has not moved for" "$(tail -n 1 rank.$number)"
  done
  rm hang.$stuck
  resumes_to "rank $stuck stood still" stuck_$stuck "$straight" "${long[@]}"
done

be_rank 1 2 20000
check_contains "a deadline that is not a number is refused" "MULLIGAN_STUCK_SECONDS='soon' is not a number of seconds" \
  "$(MULLIGAN_STUCK_SECONDS=soon "${rank[@]}" train run.toml 2>&1)"

begin_ranks 2 drifted "${long[@]}"
touch drift.1
ranks_end "rank 1 drifts: exit codes" "5 1"
for number in 0 1; do
  check_contains "rank 1 drifts: rank $number names it" "rank 1 of 2 holds other weights than the others" "$(tail -n 1 rank.$number)"
done
rm drift.1
resumes_to "rank 1 had drifted" drifted "$straight" "${long[@]}"

# Of three the two that agree are right.
begin_ranks 3 majority "${long[@]}" --set run.determinism=off --set train.micro_batches=6 --set train.tokens_per_step=768
touch drift.0
ranks_end "rank 0 of three drifts: exit codes" "1 5 5"
check_contains "rank 0 of three drifts: named by rank 2" "rank 0 of 3 holds other weights than the others" "$(tail -n 1 rank.2)"
rm drift.0
