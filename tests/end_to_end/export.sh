#!/usr/bin/env bash
# `mulligan export`: folders and files for other programs. What these make of them is for tests/judges.
source "$(dirname "${BASH_SOURCE[0]}")/cli_checks.bash"

tiny_data --validation-documents 4
record_config "$work/data" >small.toml
check "a run" "$mulligan" train small.toml --set run.directory=run --set train.steps=4 --quiet
check "its artifact" "$mulligan" quantize run --quiet

check "hf" "$mulligan" export run --to hf folder
check_equal "its files" "config.json model.safetensors modeling_mulligan.py tokenization_mulligan.py tokenizer.model tokenizer_config.json" \
  "$(cd folder && echo *)"
check_equal "the run's tokenizer" "$(sha256sum <data/tokenizer.model)" "$(sha256sum <folder/tokenizer.model)"
check "the run's weights to the bit" "$mulligan" checkpoint diff run/weights.safetensors folder/model.safetensors
check "Python reads its files" python3 -c 'import ast, json; [ast.parse(open(f"folder/{p}_mulligan.py").read()) for p in ("modeling", "tokenization")]
c = json.load(open("folder/config.json")); assert c["model"]["layers"] == 4 and c["model"]["rope.dims"] == 8 and c["model"]["lanes.final"] == "mean" and c["bos_token_id"] == 1, c'
check_refused "a folder that exists" 2 "'folder' exists already" export run --to hf folder
check "of an artifact, as bf16" "$mulligan" export run/artifact.mulligan --to hf quantised --dtype bf16
check_contains "in that dtype" '"dtype": "bfloat16"' "$(cat quantised/config.json)"
check_refused "gguf of the record's model" 2 "GGUF has no architecture" export run --to gguf x.gguf
check_refused "a model that no Python file computes" 2 "asks for its own rounding" export run --to hf rounded --set model.attention.normalizer=rounded
check_true "nothing is left of a refusal" "$(find . -maxdepth 1 -name '*rounded*' | wc -l) == 0"
check_refused "no weights" 3 "does not exist" export nowhere --to hf y
check_refused "another form" 2 "onnx not in" export run --to onnx y
check_refused "a name map" 2 "--map and --averaged are for --to safetensors" export run --to hf y --averaged
check "one meaning: as checkpoint export" "$mulligan" export run/weights.safetensors plain.safetensors
check "the weights again" "$mulligan" checkpoint diff run/weights.safetensors plain.safetensors

cat >qwen2.toml <<TOML
$(data_table "$work/data")
[model]
family = "qwen2"
vocabulary = 520
layers = 2
width = 32
heads = 4
kv_heads = 2
mlp_hidden = 48
tied_head = false
[train]
steps = 2
tokens_per_step = 512
sequence_length = 128
$(one_optimizer 0.001)
TOML
check "a qwen2 run" "$mulligan" train qwen2.toml --set run.directory=qwen2 --quiet
check "hf of qwen2" "$mulligan" export qwen2 --to hf published
keys='^(vocabulary|layers|width|heads|kv_heads|mlp_hidden|tied_head) = '
check_equal "config.json is read back as that model" "$(grep -E "$keys" qwen2.toml | sort)" \
  "$("$mulligan" config model published | grep -E "$keys" | sort)"
check "gguf of qwen2" "$mulligan" export qwen2 --to gguf model.gguf --dtype f16
check_equal "it begins as the format says" "GGUF" "$(head -c 4 model.gguf)"

# The same weights in two files and an index, as transformers writes large models.
python3 - published sharded <<'PY'
import json, os, shutil, struct, sys
source, target = sys.argv[1:]
os.makedirs(target)
shutil.copy(source + "/config.json", target)
raw = open(source + "/model.safetensors", "rb").read()
n = struct.unpack("<Q", raw[:8])[0]
header, data = json.loads(raw[8:8 + n]), raw[8 + n:]
names = sorted(name for name in header if name != "__metadata__")
index = {}
for number, part in enumerate((names[::2], names[1::2]), 1):
    file, at, head, chunks = f"model-0000{number}-of-00002.safetensors", 0, {}, []
    for name in part:
        chunk = data[slice(*header[name]["data_offsets"])]
        head[name] = header[name] | {"data_offsets": [at, at + len(chunk)]}
        at += len(chunk)
        chunks.append(chunk)
        index[name] = file
    text = json.dumps(head).encode()
    open(f"{target}/{file}", "wb").write(struct.pack("<Q", len(text)) + text + b"".join(chunks))
json.dump({"metadata": {"total_size": len(data)}, "weight_map": index}, open(target + "/model.safetensors.index.json", "w"))
PY
check "import of several files" "$mulligan" checkpoint import sharded --config qwen2.toml --out back.safetensors
check "bit for bit" "$mulligan" checkpoint diff back.safetensors published/model.safetensors
rm sharded/model-00002-of-00002.safetensors
check_refused "a file of the index is missing" 3 "model-00002-of-00002.safetensors" checkpoint import sharded --config qwen2.toml --out b.safetensors
