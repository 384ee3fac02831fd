#!/usr/bin/env bash
# Attention's rounding (docs/numerics/attention_bias.md): the switch trains and is scored alike, events "attention" are in
# metrics.jsonl and come again after a resume, mulligan probe attention prints and refuses, and the experiment runs.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

tiny_data --validation-documents 4
small_config "$work/data" >small.toml
on=(--set model.attention.stabilize=repeat_max --set train.compute_dtype=bf16 --set train.steps=4)
events() { grep '"event":"attention"' "$1/metrics.jsonl"; }

check "training without" "$mulligan" train small.toml --set run.directory=runs/off --set train.steps=4
check_true "no look unless asked for" "$(events runs/off | wc -l) == 0"
check "training with it" "$mulligan" train small.toml --set run.directory=runs/on "${on[@]}" --set metrics.attention_every=2
check_equal "a look every two steps" "2 4" "$(events runs/on | grep -o '"step":[0-9]*' | cut -d: -f2 | xargs)"
for field in largest_logit repeated_rows error_ulp delta_error delta_norm spectral_norm; do
  check_contains "it says $field" "\"$field\"" "$(events runs/on | tail -1)"
done
check "training that does not look" "$mulligan" train small.toml --set run.directory=runs/blind "${on[@]}"
check_true "the weights' digest is known" "$(json runs/on/result.json weights_sha256 | wc -c) == 65"
check_equal "looking changes no weight" "$(json runs/blind/result.json weights_sha256)" "$(json runs/on/result.json weights_sha256)"
check "a run with a checkpoint on its way" "$mulligan" train small.toml --set run.directory=runs/cut "${on[@]}" --set checkpoint.every_steps=2 \
  --set checkpoint.at_end=false
check "continued from there" "$mulligan" train small.toml --set run.directory=runs/again "${on[@]}" --set metrics.attention_every=2 \
  --resume "$(echo runs/cut/checkpoints/step_* | cut -d' ' -f1)"
check_equal "it sees what the run without a break saw" "$(events runs/on | tail -1)" "$(events runs/again | tail -1)"

check_contains "a look at a run" "spectral norm" "$("$mulligan" probe attention runs/on --json look.json)"
check_contains "as a file, too" '"repeated_rows"' "$(cat look.json)"
seen=$("$mulligan" probe attention-bias small.toml --segments 4 --seeds 2 --betas 2 --json problem.json)
check_contains "the made-up problem" "| sums | of one sign | 2 |" "$seen"
check_contains "its figures" '"bias_ulp"' "$(cat problem.json)"
seen=$(MULLIGAN=$mulligan "$root/configs/numerics/attention_bias/run" --quick 2>experiment.err) || cat experiment.err
check_contains "the experiment's first table" "| once | of one sign | 1 |" "$seen"
check_contains "and its second" "| repeat_max | " "$seen"
check_refused "--betas" 2 "not between 1 and 64" probe attention-bias small.toml --betas 0.5
check_refused "no model" 3 "nowhere" probe attention nowhere
