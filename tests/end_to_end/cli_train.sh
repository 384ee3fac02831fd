#!/usr/bin/env bash
# The main job: prepare a small corpus, train a small model of the record's architecture, score it again from its files.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

tiny_data --validation-fraction 0.1
check "prepare --check" "$mulligan" prepare --check data
"$mulligan" prepare corpus --out again --vocab-size 512 --validation-fraction 0.1 >/dev/null
check_equal "the same text gives the same data" "$(cat data/*.bin data/tokenizer.model | sha256sum)" \
  "$(cat again/*.bin again/tokenizer.model | sha256sum)"
truncate -s -2 again/fineweb_val_000000.bin
check_refused "prepare --check: a truncated shard" 3 "fineweb_val_000000.bin" prepare --check again

small_config "$work/data" >small.toml
check "train" "$mulligan" train small.toml
result=runs/small/result.json
check_equal "scored bytes are those of the validation text" "$(stat -c %s data/validation.txt)" "$(json $result val_bytes)"
bpb=$(json $result val_bpb)
check_true "val_bpb is that of loss, tokens and bytes" \
  "sqrt(($bpb - $(json $result val_loss_nats) / log(2) * $(json $result val_tokens) / $(json $result val_bytes))^2) < 1e-9"
check_refused "a finished run is not overwritten" 2 "runs/small" train small.toml
check_contains "eval of the run directory gives the same val_bpb" "$(printf '%.5f' "$bpb" | cut -c1-6)" "$("$mulligan" eval runs/small)"
check_contains "eval of the weights with a configuration" "$(printf '%.5f' "$bpb" | cut -c1-6)" \
  "$("$mulligan" eval runs/small/weights.safetensors --config small.toml)"
check "sliding evaluation" "$mulligan" eval runs/small --set eval.mode=sliding --set eval.stride=128
check_refused "eval: nothing there" 3 "nothere" eval nothere

printf 'damaged' >damaged.safetensors
check_refused "eval: damaged weights" 3 "damaged.safetensors" eval damaged.safetensors --config small.toml
head -c 3000 data/fineweb_train_000000.bin >short_train_000000.bin
check_refused "train: a truncated shard" 3 "short_train_000000.bin" train small.toml \
  --set data.train=short_train_000000.bin --set run.directory=runs/short

seen=$("$mulligan" profile small.toml --steps 1)
for kernel in matmul attention_fwd attention_bwd softcap_ce_fwd_bwd muon_update; do
  check_contains "profile has a row for $kernel" " $kernel " "$seen"
done
check_contains "profile ends with the rate of whole steps" "tokens/s" "$seen"
check_contains "profile --shapes: a product with its shapes" "] [" "$("$mulligan" profile small.toml --steps 1 --shapes | grep matmul)"
"$mulligan" profile small.toml --steps 1 --json >profile.json
check "profile --json: rows that add up, with operations and bytes" python3 - <<'PYTHON'
import json
profile = json.load(open("profile.json"))
rows = profile["rows"]
assert abs(sum(row["seconds"] for row in rows) - profile["calls_seconds"]) <= 1e-9 * len(rows)
assert all(row["calls"] > 0 and row["bytes"] > 0 for row in rows)
products = ("matmul", "matmul_add", "symmetric_matmul", "linear_leaky_relu_squared_fwd", "linear_leaky_relu_squared_bwd", "attention_fwd", "attention_bwd")
assert all((row["flops"] > 0) == (row["kernel"] in products) for row in rows)
assert sum(row["flops"] for row in rows) == profile["flops"]
assert profile["tokens_per_step"] == 1024 and profile["first_step_seconds"] > profile["step_seconds"] > 0
assert profile["peak_device_memory_bytes"] > 1_000_000
PYTHON
check_refused "profile: a phase that there is not" 2 "no phase 'looped'" profile small.toml --phase looped --set model.loop.extra_passes=0
