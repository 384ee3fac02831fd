#!/usr/bin/env bash
# Steps that count as seconds (docs/one_card.md): how long a run is, its rates and its phases do not depend on the clock, also
# where it is resumed. What is computed: one_card_test.cpp.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

mkdir corpus
for i in $(seq 40); do printf 'Document %d of a small corpus, with the number %d in it twice: %d.\n' "$i" $((i * 7)) $((i * 7)) >"corpus/$i.txt"; done
"$mulligan" prepare corpus --out data --vocab-size 320 --validation-documents 4 >/dev/null || flunk "prepare"
cat >run.toml <<END
$(data_table "$work/data")
[model]
vocabulary = 320
layers = 2
width = 32
heads = 2
[schedule]
plugin = "warmdown"
fraction = 0.5
min_factor = 0
[train]
budget_seconds = 10.5
reserve_seconds = 0.5
tokens_per_step = 512
micro_batches = 8
sequence_length = 64
clip_norm = 0.3
clip_order = "each_micro_batch"
log_every = 1
[[phase]]
name = "fast"
until_fraction = 0.35
step_seconds = 0.5
[[phase]]
name = "slow"
step_seconds = 1.0
[checkpoint]
every_steps = 9
keep = 10
[doctor]
level = "off"
$(one_optimizer 0.004)
END
train() { quiet_run run.toml "$@"; } # train NAME OPTIONS
rates() { grep '"event":"step"' "runs/$1/metrics.jsonl" | sed 's/.*"lr":{"all":\([^}]*\)}.*/\1/' | xargs; }

check_contains "a dry run knows the steps" "the whole run: 14 steps" "$("$mulligan" train run.toml --dry-run)"
train whole
# 3.5 of 10 seconds are seven steps; the others take 6.5.
check_equal "a run is as long as its steps say" 14 "$(json runs/whole/result.json steps)"
check_contains "and so are its phases" '"phase":"slow"' "$(grep '"event":"phase' runs/whole/metrics.jsonl)"
check_true "in much less time than they stand for" "$(json runs/whole/result.json tokens_per_second) > 2000"
train slower --set run.threads=1
check_equal "rates follow the steps, not the clock" "$(rates whole)" "$(rates slower)"
check_equal "the rate falls from half of the budget on" "0.004" "$(rates whole | cut -d' ' -f8)"
check_equal "by the seconds that are left: at 7.5 of 10" "0.002" "$(rates whole | cut -d' ' -f12)"
train resumed --resume runs/whole/checkpoints/step_00000009
check_equal "a resumed run ends as the whole one" "$(json runs/whole/result.json weights_sha256)" "$(json runs/resumed/result.json weights_sha256)"
check_refused "a phase without" 2 "step_seconds, but another phase has" train run.toml --set phase.1.step_seconds=0.0
