#!/usr/bin/env bash
# A model that fills in masked tokens ([model.masking]) reads both sides, in training and in scoring. No command takes its loss
# for a score of the next token.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

# The letters on both sides leave one where they differ, and two where they are the same.
letter_walk corpus 100
# So many pieces: the letters, the bytes and nothing longer.
"$mulligan" prepare corpus --out data --vocab-size 277 --validation-documents 4 >/dev/null || flunk "prepare"
cat >next.toml <<END
$(data_table "$work/data")
[model]
vocabulary = 277
layers = 2
width = 64
heads = 4
xsa_last_layers = 0
skip_weights = false
skip_gates = false
[train]
steps = 200
tokens_per_step = 1024
micro_batches = 4
sequence_length = 128
log_every = 50
[eval]
sequence_length = 128
packed_sequences = 2
$(one_optimizer 0.004)
[schedule]
plugin = "cosine"
warmup_fraction = 0.05
END
masked=(--set model.masking.share=0.15)
train() { quiet_run next.toml "$@"; } # train NAME OPTIONS
train next
# With a warm-up the loss rests longer at that of the letters' frequencies, and 500 steps can be too few.
train masked "${masked[@]}" --set train.steps=500 --set schedule.warmup_fraction=0
next=$(json runs/next/result.json val_loss_nats)
loss=$(json runs/masked/result.json val_loss_nats)
echo "# next token $next nats, masked tokens $loss nats"
check_true "the next letter has two ways" "$next > 0.693"
check_true "a hidden one is read off both sides" "$loss < 0.65"
check_contains "the doctor has looked at what is hidden" '"targets of the training rows"' "$(tr -d '\n' <runs/masked/result.json)"
check_contains "a masked run says so" '"val_masked": true' "$(cat runs/masked/result.json)"
check_contains "and has no bits per byte" '"val_bpb": null' "$(cat runs/masked/result.json)"
check_contains "its metrics say so" '"masked":true' "$(grep '"event":"validation"' runs/masked/metrics.jsonl)"
check_equal "the other has, and says nothing of masks" 0 "$(grep -c 'val_masked\|"val_bpb": null' runs/next/result.json)"
seen=$("$mulligan" eval runs/masked)
check_contains "eval scores the same tokens" "val_loss $(printf %.5f "$loss") nats over $(json runs/masked/result.json val_tokens) masked tokens, which is not in bits per byte" "$seen"
check_contains "the report names it" "val_loss of masked tokens, nats" "$(cat runs/masked/report.html)"

# Ranks, resuming, the emulated device.
few=(--set train.steps=6 --set train.log_every=2 --set doctor.level=off --set run.determinism=world --set checkpoint.every_steps=3 "${masked[@]}")
train one "${few[@]}"
for ranks in 2 4; do
  by=$ranks train "r$ranks" "${few[@]}"
  check_equal "$ranks ranks hide what one does" "$(scored one)" "$(scored "r$ranks")"
done
train resumed "${few[@]}" --resume runs/one/checkpoints/step_00000003
check_equal "a resumed run hides what was to come" "$(scored one)" "$(scored resumed)"
train emulated "${few[@]}" --set train.steps=2 --set backend.plugin=cuda --set backend.device=emulated
train cpu "${few[@]}" --set train.steps=2
cpu=$(json runs/cpu/result.json val_loss_nats)
check_true "the cuda backend trains and scores it" "sqrt(($(json runs/emulated/result.json val_loss_nats) - $cpu)^2) < 1e-4"
for precision in bf16 fp16; do
  train "$precision" "${few[@]}" --set run.determinism=run --set train.compute_dtype="$precision"
  check_true "in $precision" "sqrt(($(json "runs/$precision/result.json" val_loss_nats) - $(json runs/one/result.json val_loss_nats))^2) < 0.05"
done
check "the doctor finds nothing" "$mulligan" doctor next.toml "${masked[@]}"

# A sweep of such models: by nats, of one objective.
cat >sweep.toml <<END
config = "next.toml"
directory = "runs/sweep"
seeds = [3, 4]
metric = "val_loss_nats"
[[rows]]
name = "a"
[[rows]]
name = "b"
set = ["optimizer.all.lr=0.002"]
END
few=(--set train.steps=2 --set doctor.level=off)
see "a sweep" 0 "$mulligan" sweep sweep.toml "${few[@]}" "${masked[@]}" --quiet
check_contains "compares nats" "gain: lower nats per token than 'a'" "$seen"
check "statistics of the sweep's folder" "$mulligan" stats runs/sweep --json of_sweep.json
check_equal "its rows are the conditions" "a b" "$(python3 -c 'import json; print(*(row["name"] for row in json.load(open("of_sweep.json"))["conditions"]))')"
check_refused "by a metric that a sweep does not keep" 2 "val_bpb or val_loss_nats" stats runs/sweep --metric tokens_per_second
sed 's/^metric.*//' sweep.toml >bits.toml
check_refused "a sweep by bits per byte" 2 'metric = "val_loss_nats"' sweep bits.toml "${few[@]}" "${masked[@]}"
sed 's/^set = .*/set = ["model.masking.share=0.15"]/' sweep.toml >mixed.toml
check_refused "a sweep of two objectives" 2 "make two sweeps" sweep mixed.toml "${few[@]}"
sed 's/^set = .*/set = ["model.masking.share=0.5"]/' sweep.toml >shares.toml
check_refused "a sweep of tokens hidden otherwise" 2 "0.5 of the tokens hidden" sweep shares.toml "${few[@]}" "${masked[@]}"
check_equal "sweep.json says of each score that it is of masked tokens" 4 "$(grep -c '"masked": true' runs/sweep/sweep.json)"
check_refused "statistics of two objectives" 3 "masked tokens" stats runs/next runs/masked --metric val_loss_nats

# Few hidden tokens, and more than a row has.
check "the doctor looks at rows with one hidden token" "$mulligan" doctor next.toml --set model.masking.share=0.001
train few "${few[@]}" --set model.masking.share=0.001 --set doctor.level=start

# What needs the next token refuses it.
refused() { check_refused "refused: $1" 2 "$2" "${@:3}"; } # refused WHAT PART COMMAND...
refused "generate" "generated token by token" generate runs/masked
refused "calibrate" "answers are scored" probe calibration runs/masked
refused "probe" "probe" probe logits runs/masked
refused "ensemble" "ensembles are scored" probe ensemble runs/masked
refused "attention" "causal attention" probe attention runs/masked
small_config "$work/data" | sed "s/^vocabulary = 512/vocabulary = 277/" >small.toml
record_sections >>small.toml
refused "test-time training and artifacts" "model.masking.share" train small.toml "${masked[@]}" --set run.directory=runs/other
refused "strict rules" "not in bits per byte, so it cannot be a record" train next.toml "${masked[@]}" --set ledger.rules=strict --set run.directory=runs/other
refused "sliding evaluation" 'set eval.mode = "rows"' train next.toml "${masked[@]}" --set eval.mode=sliding --set run.directory=runs/other
refused "the token that begins documents as mask" "with which documents begin" train next.toml "${masked[@]}" --set model.masking.token=1 --set run.directory=runs/unread
check_equal "nothing is left of them" "" "$(ls -d runs/other 2>/dev/null)"
