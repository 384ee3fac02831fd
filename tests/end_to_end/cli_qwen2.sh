#!/usr/bin/env bash
# Qwen2-shaped models from published folders: the [model] table, the doctor's checks of the weights,
# scores, import, training from them and from nothing.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"
fixture=$root/tests/golden/qwen2

tiny_data --validation-documents 4

# config_of MODEL_TABLE: a run of that model.
config_of() {
  cat "$1"
  cat <<TOML
$(data_table "$work/data")
[train]
steps = 12
tokens_per_step = 512
micro_batches = 2
sequence_length = 64
log_every = 4
[train.warmup]
steps = 0
[eval]
sequence_length = 64
packed_sequences = 2
$(one_optimizer 0.003)
TOML
}

# A published folder with 512 tokens, as BF16.
python3 - "$fixture" published <<'END'
import json, os, random, struct, sys
config = json.load(open(sys.argv[1] + "/config.json"))
config.update(vocab_size=512, torch_dtype="bfloat16")
os.makedirs(sys.argv[2])
json.dump(config, open(sys.argv[2] + "/config.json", "w"))
raw = open(sys.argv[1] + "/model.safetensors", "rb").read()
n = struct.unpack("<Q", raw[:8])[0]
header, data, chunks, at = json.loads(raw[8:8 + n]), raw[8 + n:], {}, 0
random.seed(1)
for name, entry in header.items():
    begin, end = entry["data_offsets"]
    values = data[begin:end]
    if "embed" in name:
        entry["shape"][0] = 512
        values = struct.pack("<%df" % (512 * 60), *(random.gauss(0, 0.02) for _ in range(512 * 60)))
    chunks[name] = b"".join(values[i + 2:i + 4] for i in range(0, len(values), 4))
    entry.update(dtype="BF16", data_offsets=[at, at + len(chunks[name])])
    at += len(chunks[name])
text = json.dumps(header).encode()
open(sys.argv[2] + "/model.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + b"".join(chunks.values()))
END
check "its model table is printed" "$mulligan" config model published
"$mulligan" config model published >model.toml
config_of model.toml >run.toml
check "and is a configuration's" "$mulligan" config check run.toml
check_contains "with its rotary base" "base = 1000000.0" "$(cat model.toml)"

# doctor WHAT CODE TEXT ARGUMENT...
doctor() {
  local what=$1 code=$2 text=$3 seen
  shift 3
  see_all "$what: exit code" "$code" "$mulligan" doctor "$@"
  check_contains "$what" "$text" "$seen"
}
doctor "sound weights" 0 "3 passed, 0 warnings, 0 failed" run.toml --stage load --weights published
doctor "every element of them" 0 "bits of the source: $(python3 -c 'print(512*60 + 3*(2*60+60*60+60+2*(20*60+20)+60*60+3*52*60)+60)') elements" \
  run.toml --stage load --weights published
doctor "on the emulated device, in bf16" 0 "3 passed" run.toml --stage load --weights published \
  --set train.compute_dtype=bf16 --set backend.plugin=cuda --set backend.device=emulated
doctor "another rotary base" 1 "model.rope.base is 10000, config.json says 1000000" run.toml --stage load --weights published \
  --set model.rope.base=1e4
doctor "without weights" 2 "--stage load needs weights" run.toml --stage load

doctor "every op against the cpu backend" 0 "0 failed" run.toml --stage forward --set backend.plugin=cuda \
  --set backend.device=emulated

check_contains "published weights are scored" "loss" "$("$mulligan" eval published/model.safetensors --config run.toml --set data.tokenizer= 2>&1)"
check "import needs no map" "$mulligan" checkpoint import published --config run.toml --out imported.safetensors
check "the imported are scored in bits per byte" "$mulligan" eval imported.safetensors --config run.toml

check "training from nothing" "$mulligan" train run.toml --set run.name=new --set eval.use_ema=false
# These weights know nothing, which is what the doctor holds against published ones.
check_refused "weights that are worse than they should be" 1 "check D10" train run.toml --set run.name=tuned --set "init.from=$work/published" --quiet
check "training from them" "$mulligan" train run.toml --set run.name=tuned --set "init.from=$work/published" --force
check_true "it learns" "$(json runs/new/result.json val_loss_nats) < 6.2"
check_contains "the log says where the weights come from" "weights at the start: $work/published" "$(cat runs/tuned/log.txt)"
check "the same weights, trained not at all, score as imported" "$mulligan" train run.toml --set run.name=still \
  --set "init.from=$work/published" --set optimizer.all.lr=0 --set train.steps=1 --force
seen=$("$mulligan" eval imported.safetensors --config run.toml 2>&1 | sed -n 's/.*loss \([0-9.]*\) nats.*/\1/p' | tail -n 1)
check_true "to the last digit that is shown" "($(json runs/still/result.json val_loss_nats) - $seen) ^ 2 < 1e-10"
check_refused "another file than expected" 3 "init.expect_sha256 is" train run.toml --set run.name=other \
  --set "init.from=$work/published" --set init.expect_sha256=00
check_refused "no such folder" 3 "does not exist" train run.toml --set run.name=other --set init.from=nowhere
check "trained on the emulated device" "$mulligan" train run.toml --set run.name=emulated --set train.steps=2 \
  --set backend.plugin=cuda --set backend.device=emulated
