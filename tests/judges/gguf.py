"""The gguf package's reader on what `mulligan export --to gguf` writes."""
from judges.support import Row
from judges.transformers import QWEN2

JUDGE = "gguf"
NEEDS = ["numpy", "safetensors", "sentencepiece", "gguf"]
FAULTS = []


def judge(context):
    import gguf
    import numpy
    import safetensors.numpy
    import sentencepiece
    file, run = context.scratch / "qwen2.toml", context.scratch / "runs/qwen2"
    file.write_text(QWEN2.format(tied="false", data=context.data))
    context.mulligan("train", file, "--set", f"run.directory={run}", "--set", "train.steps=5", "--quiet")
    weights = safetensors.numpy.load_file(run / "weights.safetensors")
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.QWEN2, 3)  # the package's own map from the published names
    for dtype in ("f32", "f16", "bf16"):
        context.mulligan("export", run, "--to", "gguf", f"{dtype}.gguf", "--dtype", dtype)
        reader = gguf.GGUFReader(context.scratch / f"{dtype}.gguf")
        read = {t.name: gguf.dequantize(t.data, t.tensor_type).reshape([int(n) for n in t.shape][::-1]) for t in reader.tensors}
        worst, missing = 0.0, []
        for name, value in weights.items():
            theirs = names.get_name(name, try_suffixes=(".weight", ".bias"))
            if theirs not in read or read[theirs].shape != value.shape:
                missing.append(name)
                continue
            worst = max(worst, float(numpy.abs(read[theirs] - value).max() / numpy.abs(value).max()))
        bound = {"f32": 0, "f16": 2**-11, "bf16": 2**-8}[dtype]
        yield Row(f"{dtype}: {len(weights)} tensors under the names that the package gives them", f"{worst:.1e} of the largest, "
                  f"{len(missing)} missing", f"{bound:.1e}", worst <= bound and not missing and len(read) == len(weights))
    fields = {name: field.contents() for name, field in reader.fields.items()}
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(context.data / "tokenizer.model"))
    kinds = [6 if pieces.is_byte(i) else 2 if pieces.is_unknown(i) else 3 if pieces.is_control(i) else 1 for i in range(512)]
    wrong = [name for name, value in {
        "general.architecture": "qwen2", "qwen2.block_count": 3, "qwen2.embedding_length": 64, "qwen2.feed_forward_length": 160,
        "qwen2.attention.head_count": 4, "qwen2.attention.head_count_kv": 2, "qwen2.rope.freq_base": 10000.0,
        "tokenizer.ggml.tokens": [pieces.id_to_piece(i) for i in range(512)], "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.scores": [pieces.get_score(i) for i in range(512)], "tokenizer.ggml.bos_token_id": pieces.bos_id(),
    }.items() if fields.get(name) != value]
    yield Row("keys of the model and 512 pieces with scores and kinds", f"{len(wrong)} keys{': ' + ', '.join(wrong) if wrong else ''}", "0",
              not wrong)
