#!/usr/bin/env bash
# mulligan probe logits and the experiment of LayerCast: a small trained model in several precisions and batch sizes, what is refused.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

tiny_data --validation-documents 4
record_config "$work/data" >small.toml
check "train" "$mulligan" train small.toml
run=runs/small
small=(--batches 1,3 --sequences 2 --length 48 --prompt 16 --tokens 12)

see "probe" 0 "$mulligan" probe logits $run "${small[@]}" --evaluate --json probe.json --quiet 2>probe.err
check_equal "and says nothing else" "" "$(cat probe.err)"
check_contains "the table has the precisions" "layercast-bf16" "$seen"
check "figures: bytes by the elements, batches that change little in fp32, LayerCast nearer to fp32 than bf16" python3 - <<'END'
import json
report = json.load(open("probe.json"))
by_name = {m["precision"]: m for m in report["measurements"]}
assert list(by_name) == ["fp32", "bf16", "layercast-bf16"], list(by_name)
projections, others = by_name["fp32"]["projection_elements"], by_name["fp32"]["other_elements"]
assert projections > 0 and others > 0
assert by_name["fp32"]["weight_bytes"] == by_name["fp32"]["held_bytes"] == 4 * (projections + others)
cast = by_name["layercast-bf16"]
assert cast["weight_bytes"] == cast["held_bytes"] == 2 * projections + 4 * others, cast
for name in ("fp32", "layercast-bf16"):
    changes = by_name[name]["batch_changes"]
    assert [c["compared"] for c in changes] == ["batch 3 to batch 1"], changes
    assert changes[0]["rows"] == 2 * 48 and changes[0]["texts"] == 2, changes
    assert changes[0]["largest_over_rms"] <= 1e-5 and changes[0]["top1_flips"] == 0, changes
assert by_name["fp32"]["precision_changes"] is None
near, far = (by_name[n]["precision_changes"]["largest_over_rms"] for n in ("layercast-bf16", "bf16"))
assert 0 < near < far, (near, far)
assert all(m["val_bpb"] > 0 and m["scored_tokens_per_second"] > 0 for m in by_name.values())
END
check_true "the score of fp32 is the run's" \
  "sqrt(($(json probe.json val_bpb) - $(json $run/result.json val_bpb)) ^ 2) < 1e-6"
"$mulligan" probe logits $run "${small[@]}" --json again.json --precisions fp32 --vary backend.threads=1 \
  --vary "run.fused_kernels=false backend.threads=2" --quiet >/dev/null
check "threads change no bit, other kernels the rounding of fp32" python3 - <<'END'
import json
plain, threads, kernels = json.load(open("again.json"))["measurements"]
assert threads["setting"] == "backend.threads=1" and kernels["setting"] == "run.fused_kernels=false backend.threads=2"
assert threads["setting_changes"]["largest_over_rms"] == 0 and threads["setting_changes"]["texts_diverged"] == 0, threads
assert kernels["setting_changes"]["largest_over_rms"] < 1e-4, kernels
assert plain["setting_changes"] is None and plain["batch_changes"] and not threads["batch_changes"]
END
check "an artifact" bash -c "'$mulligan' quantize $run >/dev/null && '$mulligan' probe logits $run/artifact.mulligan --tokens 0 ${small[*]:0:6}"
see_all "eval follows train.layercast" 0 "$mulligan" eval $run --set train.layercast=bf16
check_refused "another precision" 2 "there is no precision 'fp8'" probe logits $run --precisions fp32,fp8
check_refused "a prompt that is longer than its sequence" 2 "--prompt is 50" probe logits $run --length 48 --prompt 50
check_refused "too few tokens" 3 "too few for 2 different sequences" probe logits $run --length 900000 --sequences 2 --batches 1
check_refused "no weights" 3 "does not exist" probe logits nowhere
check_refused "figures of two runs in one file" 2 "--json takes the figures of one run" probe logits $run $run --json two.json

# The experiment, as short as it gets.
cp -r "$root/configs" .
if MULLIGAN=$mulligan configs/numerics/layercast/run --quick >experiment.md 2>experiment.err; then
  pass "configs/numerics/layercast/run --quick"
  check_contains "a Markdown table with mean and deviation over two seeds" "n = 2 runs" "$(cat experiment.md)"
  check_contains "a row of each precision" "| layercast-bf16 | batch 3 to batch 1 |" "$(cat experiment.md)"
else
  flunk "configs/numerics/layercast/run --quick" "$(cat experiment.md experiment.err)"
fi
if MULLIGAN=$mulligan configs/numerics/fp8_head/run --quick >experiment.md 2>experiment.err; then
  pass "configs/numerics/fp8_head/run --quick"
  check_contains "a row of the head in FP8" "| bf16, head in FP8 | 2 " "$(cat experiment.md)"
  mean_of() { awk -F' *[|] *' -v row="$1" '$2 == row && $3 == 2 { print $4 }' experiment.md; }
  check_true "FP8 changes what is learnt" "$(mean_of bf16) != $(mean_of "bf16, head in FP8")"
else
  flunk "configs/numerics/fp8_head/run --quick" "$(cat experiment.md experiment.err)"
fi
