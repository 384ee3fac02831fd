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
check_equal "nothing was written" "refused.err refused.out" "$(echo *)"
