#!/usr/bin/env bash
# profile --predict: a step on a GPU by arithmetic, without data, GPU or CUDA.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"
record=$root/configs/records/pr1886.toml
predict() { "$mulligan" profile "$record" --predict "$@"; }

seen=$(predict --card h100 --document-tokens 1250)
for word in "predicted, not measured" "phase plain (11 layers)" "phase looped (17 layers)" "layer matmuls" "attention, backward" \
  "micro step: matmul (head)" "between programs: memset" "predicted step"; do
  check_contains "the prediction has: $word" "$word" "$seen"
done
check_contains "--shapes: a product with its shapes" "[98304, 512] [2048, 512] [98304, 2048]" "$(predict --shapes)"
check_equal "--phase: that phase alone" "phase looped (17 layers)" "$(predict --phase looped | grep '^phase')"
predict --card h100 --ranks 8 --document-tokens 1250 --json >eight.json
predict --card h100 --document-tokens 1250 --json --set train.micro_batches=1 --set train.tokens_per_step=98304 --set run.fused_kernels=false >one.json
predict --card h100 --document-tokens 1250 --json --set train.micro_batches=1 --set train.tokens_per_step=98304 >fused.json
predict --card a100 --document-tokens 1250 --json --set train.micro_batches=1 --set train.tokens_per_step=98304 --set run.fused_kernels=false >slow.json
check "--json: rows and categories add up; FLOPs, bytes and launches of the record's step by hand" python3 - <<'PYTHON'
import json
one, eight, slow, fused = (json.load(open(f"{name}.json")) for name in ("one", "eight", "slow", "fused"))
assert one["predicted"] is True and one["card"] == "h100" and one["tokens_per_step"] == 98304 and eight["ranks"] == 8
T, d, V = 98304, 512, 8192
for result in (one, slow):
    for phase, layers in zip(result["phases"], (11, 17)):
        for parts in ("rows", "categories"):
            for total, key in (("predicted_step_seconds", "seconds"), ("flops", "flops"), ("bytes_written", "bytes_written")):
                assert abs(sum(row[key] for row in phase[parts]) - phase[total]) <= 1e-9 * phase[total], (parts, key)
        assert phase["layers"] == layers and 0 < phase["predicted_step_seconds"]
        of = {row["category"]: row for row in phase["categories"]}
        assert of["layer matmuls"]["flops"] == 6 * T * layers * (11 * d * d + 8 * d)  # q, k, v, out, MLP, gate; three ways
        assert of["head matmuls"]["flops"] == 6 * T * V * d
        assert of["attention, forward"]["flops"] == 4 * d * T * 1251 / 2 * layers
        assert of["MLP activation"]["bytes_written"] == 2 * 2 * T * 2048 * layers
        assert of["MLP activation"]["bytes_read"] == 3 * 2 * T * 2048 * layers
        assert of["MLP activation"]["launches"] == 2 * layers
        assert of["attention, forward"]["launches"] == layers  # the library's alone: starts of rows come with the upload
for plain, joined in zip(one["phases"], fused["phases"]):
    assert abs(plain["flops"] - joined["flops"]) < 1e-9 * plain["flops"]
    assert joined["predicted_step_seconds"] <= plain["predicted_step_seconds"] and joined["launches"] <= plain["launches"]
for fast, slower in zip(one["phases"], slow["phases"]):
    assert fast["launches"] == slower["launches"] and fast["predicted_step_seconds"] < slower["predicted_step_seconds"]
PYTHON
check_refused "a key of the cuda backend where [backend] names another" 2 "unknown key 'backend.require_library'" \
  profile "$record" --predict --set backend.require_library=true
printf 'extends = "%s"\n[[backend.kernels]]\nmatch = "softcap_ce_fwd"\npath = "none.ptx"\n' "$record" >rows.toml
check_refused "rows of kernels where [backend] names another" 2 "set backend.plugin=cuda" profile rows.toml --predict
rm rows.toml
check_refused "an unknown card" 2 "abacus" profile "$record" --predict --card abacus
check_refused "--card needs --predict" 2 "--predict" profile "$record" --card h100
check_refused "--steps times nothing there" 2 "--steps" profile "$record" --predict --steps 2
check_refused "ranks that do not divide the step" 2 "3 ranks" profile "$record" --predict --ranks 3
check_refused "a phase that there is not" 2 "no phase 'looped'; there are: plain" profile "$record" --predict --phase looped --set model.loop.extra_passes=0
check_equal "nothing was written" "eight.json fused.json one.json refused.err refused.out slow.json" "$(echo *)"
