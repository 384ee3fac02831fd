#!/usr/bin/env bash
# A sweep whose trainings are shared by ranks: the same weights as one process in world mode, costs of each row with energy
# measured or said to be absent, finished trainings used again, failures; and the experiment on precisions and ranks, in short.
source "$(dirname "${BASH_SOURCE[0]}")/ranks.bash"
make_subject

cat >sweep.toml <<TOML
config = "run.toml"
directory = "swept"
seeds = [3, 4]
metric = "val_loss_nats"
costs = true
target_loss_nats = 1000.0
[[rows]]
name = "alone"
set = ["run.determinism=world"]
[[rows]]
name = "two"
set = ["run.determinism=world"]
ranks = 2
[[rows]]
name = "two, ddp"
set = ["run.determinism=world", "parallel.strategy=ddp"]
ranks = 2
TOML
sweep() { "$mulligan" sweep sweep.toml --set metrics.energy=true "$@" >seen 2>seen.err; }

if sweep; then pass "a sweep with ranks"; else flunk "a sweep with ranks" "$(cat seen seen.err)"; fi
for seed in 3 4; do
  check_equal "two ranks have the weights of one, to the bit (seed $seed)" "$(weights swept/alone/seed_$seed)" "$(weights swept/two/seed_$seed)"
  check_equal "and so have two that share no update" "$(weights swept/alone/seed_$seed)" "$(weights swept/two__ddp/seed_$seed)"
done
check_equal "they were two" 2 "$(json swept/two/seed_3/result.json ranks)"
check_contains "their logs are kept" "rank_0001.log" "$(find swept/two/seed_3_ranks -name '*.log')"
check_contains "speed, memory and energy by row" "| tokens/s" "$(cat seen)"
check_contains "seconds to the target" "s to 1000 nats" "$(cat seen)"
if [[ $(json swept/two/seed_3/result.json joules) == null ]]; then
  check_contains "energy that is not counted is said to be absent" "No energy: " "$(cat seen)"
  check_contains "in the run's report, too" "not measured" "$(cat swept/two/seed_3/report.html)"
else
  check_true "energy was measured" "$(json swept/two/seed_3/result.json joules) > 0"
fi
before=$(stat -c %Y%i swept/two/seed_3/result.json)
sweep --quiet
check_equal "a finished training is used again" "$before" "$(stat -c %Y%i swept/two/seed_3/result.json)"
sed -i 's/^ranks = 2/ranks = 4/' sweep.toml
sweep --quiet
check_equal "but not one by another number of ranks" 4 "$(json swept/two/seed_3/result.json ranks)"
check_equal "which has these weights, too" "$(weights swept/alone/seed_3)" "$(weights swept/two/seed_3)"
sed -i 's/^ranks = 4/ranks = 3/' sweep.toml # three do not divide the micro-batches
"$mulligan" sweep sweep.toml --quiet >refused.out 2>refused.err
check_equal "a training that fails ends the sweep with its code" 2 $?
check_contains "and says which" "training 'swept/two/seed_3' by 3 ranks: " "$(cat refused.err)"
sed -i 's/^ranks = 3/ranks = 0/' sweep.toml
check_refused "no ranks" 2 "ranks" sweep sweep.toml

cp -r "$root/configs" .
if MULLIGAN=$mulligan configs/numerics/data_parallel/run --quick >experiment.md 2>experiment.err; then
  check_contains "configs/numerics/data_parallel/run --quick" "| fp32, 2 sharded" "$(cat experiment.md)"
else
  flunk "configs/numerics/data_parallel/run --quick" "$(cat experiment.md experiment.err)"
fi
