#!/usr/bin/env bash
# The fixed parts of the optimiser benchmark in one run: the family modded on a stream of joined documents without a
# tokenizer, its loss a sum; by one rank or several, resumed, on both backends.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

letter_walk corpus
"$mulligan" prepare corpus --out data --vocab-size 277 --validation-documents 8 >/dev/null || flunk "prepare"
cat >arena.toml <<END
$(data_table "$work/data" none)
order = "stream"
documents = "joined"
[model]
family = "modded"
vocabulary = 277
layers = 2
width = 64
heads = 2
attention_scale = 0.12
[model.rope]
form = "half_truncated"
base = 1024
[model.rational_softcap]
cap = 15
[loss]
plugin = "cross_entropy"
[schedule]
plugin = "warmdown"
fraction = 0.7
[train]
steps = 80
tokens_per_step = 1024
micro_batches = 4
sequence_length = 128
loss_reduction = "sum"
log_every = 20
validate_at = [5, 30]
[eval]
sequence_length = 128
packed_sequences = 2
tokens = 4096
$(one_optimizer 0.004)
weight_decay = 0.0
END
check "a dry run" "$mulligan" train arena.toml --dry-run
check "a prediction for a card" "$mulligan" profile arena.toml --predict
train() { quiet_run arena.toml "$@"; } # train NAME OPTIONS

train whole
loss=$(json runs/whole/result.json val_loss_nats)
echo "# $loss nats"
check_true "it learns the walk" "$loss < 1.5 && $loss > 0.693"
check_equal "the first targets are scored" 4096 "$(json runs/whole/result.json val_tokens)"
check_contains "in nats alone" '"val_bpb": null' "$(cat runs/whole/result.json)"
check_equal "validations at the steps listed" "5 30" \
  "$(grep '"event":"validation"' runs/whole/metrics.jsonl | sed 's/.*"step":\([0-9]*\).*/\1/' | head -2 | xargs)"
check_contains "eval gives the same score" "val_loss $(printf %.5f "$loss") nats over 4096 tokens" "$("$mulligan" eval runs/whole)"
check_equal "the doctor finds nothing, for chance alone makes walks over few letters alike" "" \
  "$("$mulligan" doctor arena.toml 2>&1 | sed -nE 's/^ *(FAIL|WARN) (D[0-9]+).*/\2/p' | xargs)"

few=(--set train.steps=6 --set train.validate_at=[] --set train.log_every=2 --set doctor.level=off --set run.determinism=world
  --set checkpoint.every_steps=3)
train one "${few[@]}"
for ranks in 2 4; do
  by=$ranks train "r$ranks" "${few[@]}"
  check_equal "$ranks ranks read what one does" "$(scored one)" "$(scored "r$ranks")"
  by=$ranks train "owned$ranks" "${few[@]}" --set parameters.0.communication=owner
  check_equal "also where each owns parameters" "$(scored one)" "$(scored "owned$ranks")"
done
train resumed "${few[@]}" --resume runs/one/checkpoints/step_00000003
check_equal "a resumed run goes on in the stream" "$(scored one)" "$(scored resumed)"
train taken_over "${few[@]}" --set parameters.0.communication=owner --resume runs/owned4/checkpoints/step_00000003
check_equal "one rank goes on where four owned parameters" "$(scored one)" "$(scored taken_over)"
train emulated "${few[@]}" --set train.steps=2 --set backend.plugin=cuda --set backend.device=emulated
train cpu "${few[@]}" --set train.steps=2
near() { check_true "$1" "sqrt(($(json "runs/$2/result.json" val_loss_nats) - $(json "runs/$3/result.json" val_loss_nats))^2) < $4"; }
near "the cuda backend trains and scores it" cpu emulated 1e-4
train bf16 "${few[@]}" --set run.determinism=run --set train.compute_dtype=bf16
near "in bf16" bf16 one 0.05

# Schedules over more steps than are made: 6 of 80 lie before the decay.
rate() { grep '"event":"step"' "runs/$1/metrics.jsonl" | tail -1 | sed 's/.*"lr":{"all":\([^}]*\)}.*/\1/'; }
train long "${few[@]}" --set schedule.horizon_steps=80
check_equal "a schedule over a longer horizon" 0.004 "$(rate long)"
check_true "and one over the run's steps" "$(rate one) < 0.004"

# A result is all of its runs.
for seed in 1 2 3; do
  train "result/$seed" "${few[@]}" --set run.seed=$seed --set train.steps=20 --set train.validate_at='[3]'
done
see "a result under 3.28 nats is accepted" 0 "$mulligan" stats arena runs/result/1 runs/result/2 runs/result/3 --json arena.json
check_contains "at the earliest step" "ACCEPT: $(json arena.json step) steps" "$seen"
check_contains "with what nothing held it to" "no [arena] track" "$seen"
check_contains "the old result is no better than itself" "NOT SHOWN to be better" \
  "$("$mulligan" stats arena runs/result/1 runs/result/2 runs/result/3 --old runs/result/1 runs/result/2 runs/result/3)"
check_refused "a step that was not validated" 3 "was not validated at step 4" \
  stats arena runs/result/1 runs/result/2 runs/result/3 --step 4
printf 'code\n====\nstep:5/5 val_loss:3.27900 val_ema_loss:3.27500 train_time:1s\n' >published.txt
check_refused "a log above the limit" 1 "no result by the rule" stats arena --logs published.txt

check_refused "a seed that is left out" 2 "3' is a finished run of the same settings" stats arena runs/result/1 runs/result/2

# Drawn otherwise; what ends too soon.
check_refused "rows are not written on the command line" 2 "'init.values' must be written as rows [[init.values]]" \
  train arena.toml --set init.values='[{match = "proj.weight", law = "normal_by_inputs", scale = 0.5}]'
printf '[[init.values]]\nmatch = "proj.weight"\nlaw = "normal_by_inputs"\nscale = 0.5\n' | cat arena.toml - >drawn.toml
check "train drawn" "$mulligan" train drawn.toml --quiet --set run.directory=runs/drawn "${few[@]}"
check_true "a head that is drawn" "$(json runs/drawn/result.json val_loss_nats) != $(json runs/one/result.json val_loss_nats)"
check_refused "a text that ends before the steps do" 3 "but train.steps is 100000" train arena.toml --set train.steps=100000 \
  --set run.directory=runs/unread
check_refused "more targets than there are" 3 "eval.tokens is 1000000" train arena.toml --set eval.tokens=1000000 \
  --set run.directory=runs/unread
