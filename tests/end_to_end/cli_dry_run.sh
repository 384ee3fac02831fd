#!/usr/bin/env bash
# train --dry-run: the plan of a run, without data and without the device it would run on.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

plan=$("$mulligan" train "$root/configs/records/pr1886.toml" --dry-run --card h100)
for word in tok_emb qo_bank kv_bank mlp_up_bank mlp_down_bank skip_weights muon adamw bf16; do
  check_contains "the table of tensors has $word" "$word" "$plan"
done
for word in FLOP bytes h100; do check_contains "the plan speaks of $word" "${word,,}" "${plan,,}"; done
check_refused "an unknown card" 2 "abacus" train "$root/configs/records/pr1886.toml" --dry-run --card abacus
check_refused "--card needs --dry-run" 2 "--dry-run" train "$root/configs/records/pr1886.toml" --card h100
check_refused "test-time training that exceeds the card" 2 "test-time training needs" train "$root/configs/records/pr1886.toml" \
  --dry-run --card rtx4090
check "the quickstart's plan" "$mulligan" train "$root/configs/quickstart.toml" --dry-run

nodes=$("$mulligan" train "$root/configs/records/pr1886.toml" --dry-run --nodes 6 --gpus-per-node 8 --link-gbps 100)
for word in "predicted, not measured" "phase plain" "phase looped" "all_reduce" "reduce  " "broadcast" "scaling stops paying at" \
  "786432, which 'train.micro_batches' (derived from the number of ranks) = 40 does not divide"; do
  check_contains "the prediction over nodes has: $word" "$word" "$nodes"
done
check "compute, exposed communication and step add up; one node's communication by hand" python3 - "$nodes" <<'PYTHON'
import sys
rows = [line.split() for line in sys.argv[1].splitlines() if line.strip()[:1].isdigit() and line.split()[-1].endswith("%")]
assert [row[0] for row in rows] == ["1", "2", "3", "4", "6"] * 2, rows
for row in rows:
    compute, network, exposed, step = map(float, row[3:7])
    assert abs(compute + exposed - step) < 0.02 and 0 <= exposed <= network, row
    assert abs(float(row[7].replace(",", "")) * step / 1e3 / 786432 - 1) < 0.001, row
# 8 ranks: banks of 22 matrices in slices of 3, matrices of those of 11 each for itself, since 8 slices of 2 would send more; bf16 there
# and f32 back. The rest is summed in f32.
slices = 3 * 512 * 512 + 3 * 256 * 512
matrices = 2 * 11 * 2048 * 512
rest = 35_989_658 - (22 * 512 * 512 + 22 * 256 * 512 + matrices)
seconds = ((7 * slices + matrices) * (2 + 4) + 2 * 7 / 8 * (4 * rest + 8)) / 360e9 + (14 + 7 + 7 + 4 * 7) * 2e-6
assert abs(float(rows[0][4]) - 1e3 * seconds) < 0.006, (rows[0], seconds)
PYTHON
check_refused "several nodes without their link" 2 "--link-gbps" train "$root/configs/records/pr1886.toml" --dry-run --nodes 2
check_refused "--nodes and --ranks" 2 "--ranks" train "$root/configs/records/pr1886.toml" --dry-run --nodes 2 --ranks 2 --link-gbps 1
check_equal "nothing was written" "refused.err refused.out" "$(echo *)"
