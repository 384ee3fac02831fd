"""llama.cpp (by its library in the package llama-cpp-py-sync) reads what `mulligan export --to gguf` writes: ids of texts, mean loss."""
import math

from judges.support import Row, shard_tokens
from judges.transformers import QWEN2

JUDGE = "llama.cpp"
NEEDS = ["numpy", "sentencepiece", "safetensors", "torch", "transformers", "llama-cpp-py-sync"]
FAULTS = ["off-by-one-token"]

ROWS, LENGTH = 6, 256
TEXTS = ["The first words of a text.", "two  spaces, a comma", "12.50 and\ta tab", "é, ﬁ and 日本", "x" * 40]


def logits_of(path, rows):
    """[rows, LENGTH, V] of token rows, each by itself."""
    import numpy
    from llama_cpp_py_sync._cffi_bindings import get_ffi, get_lib
    ffi, lib = get_ffi(), get_lib()
    lib.llama_backend_init()
    settings = lib.llama_model_default_params()
    settings.n_gpu_layers = 0
    model = lib.llama_model_load_from_file(str(path).encode(), settings)
    if model == ffi.NULL:
        raise RuntimeError("llama.cpp does not load the file")
    vocab = lib.llama_model_get_vocab(model)
    size = lib.llama_vocab_n_tokens(vocab)
    found = []
    for row in rows:
        settings = lib.llama_context_default_params()
        settings.n_ctx = settings.n_batch = settings.n_ubatch = LENGTH
        settings.n_threads = settings.n_threads_batch = 2
        settings.flash_attn_type = 0
        context = lib.llama_init_from_model(model, settings)
        batch = lib.llama_batch_init(LENGTH, 0, 1)
        batch.n_tokens = LENGTH
        for i, token in enumerate(row):
            batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.logits[i] = int(token), i, 1, 1
            batch.seq_id[i][0] = 0
        if lib.llama_decode(context, batch) != 0:
            raise RuntimeError("llama_decode fails")
        raw = ffi.buffer(lib.llama_get_logits(context), 4 * LENGTH * size)
        found.append(numpy.frombuffer(bytes(raw), "<f4").reshape(LENGTH, size))
        lib.llama_batch_free(batch)
        lib.llama_free(context)

    def tokens(text):
        raw, room = text.encode(), ffi.new("int32_t[4096]")
        return list(room[0:lib.llama_tokenize(vocab, raw, len(raw), room, 4096, False, False)])
    return numpy.stack(found), [tokens(text) for text in TEXTS]


def judge(context):
    import numpy
    import sentencepiece
    import torch
    from judges.transformers import load
    file, run = context.scratch / "llama.toml", context.scratch / "runs/llama"
    file.write_text(QWEN2.format(tied="true", data=context.data))
    context.mulligan("train", file, "--set", f"run.directory={run}", "--quiet")
    tokens = numpy.concatenate([shard_tokens(path) for path in sorted(context.data.glob("fineweb_val_*.bin"))])
    rows = [tokens[k * LENGTH:(k + 1) * LENGTH + 1].astype("int64") for k in range(ROWS)]
    context.mulligan("export", run, "--to", "gguf", "f32.gguf", "--dtype", "f32")
    z, ids = logits_of(context.scratch / "f32.gguf", [row[:-1] for row in rows])
    shift = 0 if context.planted else 1
    targets = torch.tensor(numpy.stack([row[shift:LENGTH + shift] for row in rows]))
    theirs = float(torch.nn.functional.cross_entropy(torch.tensor(z).double().reshape(-1, z.shape[-1]), targets.reshape(-1)))
    # Rows that cross documents have no score of this program's; the folder for transformers has been judged to be its model.
    context.mulligan("export", run, "--to", "hf", "hf")
    model, _, _ = load(context.scratch / "hf")
    with torch.no_grad():
        ours = model(torch.tensor(numpy.stack([row[:-1] for row in rows]))).logits.double()
    mean = float(torch.nn.functional.cross_entropy(ours.reshape(-1, ours.shape[-1]), torch.tensor(numpy.stack([row[1:] for row in rows])).reshape(-1)))
    off = abs(mean - theirs)
    yield Row(f"mean loss of {ROWS * LENGTH} tokens in f32, {mean:.6f} nats of the exported folder", f"{off:.1e} nats", "1e-04",
              math.isfinite(off) and off <= 1e-4)
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(context.data / "tokenizer.model"))
    unequal = [text for text, found in zip(TEXTS, ids) if pieces.encode(text) != found]
    yield Row(f"ids of {len(TEXTS)} texts", f"{len(unequal)} texts{': ' + repr(unequal[0]) if unequal else ''}", "0", not unequal)
