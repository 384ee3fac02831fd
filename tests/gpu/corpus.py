"""Text, data and configurations of the rows. The text is made up (words of random syllables, with frequencies as in
natural language), so that nothing has to be carried or downloaded; the same for everybody."""
import json
import math
import random

SYLLABLES = [a + b + c for a in ("b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "st", "pr", "ch")
             for b in "aeiou" for c in ("", "n", "r", "s", "l")]


def write_text(path, documents, mean_words, words, seed=1):
    """JSON lines with `documents` documents; their lengths are log-normal, as on web pages."""
    draw = random.Random(seed)
    vocabulary = ["".join(draw.choices(SYLLABLES, k=draw.choice((1, 2, 2, 3, 3, 4)))) for _ in range(words)]
    weights = [1.0 / (rank + 3) for rank in range(words)]
    sums, total = [], 0.0
    for weight in weights:
        total += weight
        sums.append(total)
    with open(path, "w", encoding="utf-8") as file:
        for _ in range(documents):
            count = max(8, int(draw.lognormvariate(math.log(mean_words) - 0.3, 0.75)))
            text = draw.choices(vocabulary, cum_weights=sums, k=count)
            file.write(json.dumps({"text": " ".join(text).capitalize() + "."}) + "\n")


def prepare(context, name, vocabulary, documents, mean_words, words, validation):
    """Shards and tokenizer of made-up text, made once per run: the folder."""
    folder = context.scratch / name
    if not (folder / "manifest.json").exists():
        text = context.scratch / f"{name}.jsonl"
        write_text(text, documents, mean_words, words)
        context.mulligan("prepare", text, "--out", folder, "--vocab-size", vocabulary, "--validation-documents", validation)
    return folder


def data_settings(folder):
    return {"data.train": f"{folder}/fineweb_train_*.bin", "data.validation": f"{folder}/fineweb_val_*.bin",
            "data.tokenizer": f"{folder}/tokenizer.model"}


def small_data(context):
    return prepare(context, "small", 512, 260, 60, 400, 1 if context.quick and context.emulated else 12)


def record_data(context):
    """Of the record's vocabulary; emulated: of the small one's."""
    if context.emulated:
        return small_data(context)
    return prepare(context, "record", 8192, 2000, 500, 30_000, 64)


# The model of the correctness rows: every feature of the record's architecture. Emulated, and on a GPU.
SMALL_MODEL = {
    True: {"model.vocabulary": 512, "model.layers": 4, "model.width": 64, "model.heads": 4, "model.kv_heads": 2,
           "model.head_width": 16, "model.rope.dims": 8, "model.loop.first": 1, "model.loop.last": 2,
           "model.lanes.parallel_start": 3, "model.mlp_hidden": 128, "train.tokens_per_step": 128,
           "train.sequence_length": 64, "eval.sequence_length": 64, "eval.packed_sequences": 2, "ttt.context_tokens": 64,
           "ttt.chunk_tokens": 32, "ttt.batch_documents": 2, "ttt.adapters.rank": 4, "ttt.document_fraction": 0.25,
           "quantize.calibration_batches": 1, "quantize.calibration_rows": 2},
    False: {"model.vocabulary": 512, "model.heads": 2, "model.kv_heads": 1, "train.tokens_per_step": 8192},
}


def small_settings(context, backend, dtype, steps, **more):
    """Of configs/quickstart.toml, so that a run of a few steps fits the rows."""
    settings = {"train.compute_dtype": dtype, "optimizer.matrices.compute_dtype": dtype, "train.budget_seconds": 0,
                "train.steps": steps, "schedule.by": "step", "train.warmup.steps": 0, "ema.decay": 0.9, "train.log_every": 1,
                **SMALL_MODEL[context.emulated], **data_settings(small_data(context)), **context.backend(backend)}
    return arguments({**settings, **more})


def record_shape(context):
    """Settings of configs/records/pr1886.toml for one rank, and what the peers have to be told of it."""
    settings = {"train.micro_batches": 1, "train.tokens_per_step": 98_304, "run.seed": 42}
    peer = dict(vocabulary=8192, layers=11, width=512, heads=8, kv_heads=4, mlp_hidden=2048, rope_dims=16, parallel_start=8,
                loop_first=3, loop_last=5, sequence=2048, tokens=98_304)
    if context.emulated:
        peer = dict(vocabulary=512, layers=6, width=64, heads=4, kv_heads=2, mlp_hidden=128, rope_dims=8, parallel_start=4,
                    loop_first=2, loop_last=3, sequence=64, tokens=128)
        settings.update({"train.tokens_per_step": 128, "train.sequence_length": 64, "eval.sequence_length": 64,
                         "model.head_width": 16, "model.xsa_last_layers": -1, "train.warmup.steps": 0})
        names = {"rope_dims": "rope.dims", "parallel_start": "lanes.parallel_start", "loop_first": "loop.first",
                 "loop_last": "loop.last"}
        for name in ("vocabulary", "layers", "width", "heads", "kv_heads", "mlp_hidden", *names):
            settings[f"model.{names.get(name, name)}"] = peer[name]
    return settings, peer


def record_settings(context, **more):
    settings, _ = record_shape(context)
    return arguments({**settings, **data_settings(record_data(context)), **context.backend("cuda"), **more})


def arguments(settings):
    return [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
