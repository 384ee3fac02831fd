"""The row of the first hour for test-time training at the record's size: its set-up, its memory against the dry run, and the
library's attention over its first, short windows against the own kernel."""
import json
import re
import struct

from context import require_near
from corpus import record_data, record_settings
from harness import NotOk, Rows

rows = Rows()
RECORD = "records/pr1886.toml"
HEADER = struct.Struct("<256i")
BOS = 1


def documents(context, name, count, tokens):
    """A validation shard of so many documents of so many tokens and a BOS, from the text of the training shards."""
    text = []
    for shard in sorted(record_data(context).glob("fineweb_train_*.bin")):
        raw = shard.read_bytes()[HEADER.size:]
        text += [token for token in struct.unpack(f"<{len(raw) // 2}H", raw) if token != BOS]
    while len(text) < count * tokens:
        text += text
    stream = [token for i in range(count) for token in (BOS, *text[i * tokens:(i + 1) * tokens])]
    folder = context.scratch / name
    folder.mkdir(exist_ok=True)
    shard = folder / "fineweb_val_000000.bin"
    shard.write_bytes(HEADER.pack(20240520, 1, len(stream), *[0] * 253) + struct.pack(f"<{len(stream)}H", *stream))
    return shard


def adapt(context, weights, name, settings):
    output = context.scratch / name
    output.mkdir(exist_ok=True)
    context.mulligan("ttt", weights, "--config", context.config(RECORD), "--output", output, *settings)
    return json.loads((output / "ttt_result.json").read_text())


@rows.row("ttt-first", "correctness", "test-time training of 64 x 2,048 tokens: set-up, memory against the dry run; two chunks of 48", 300)
def ttt_first(context, detail):
    batch, tokens, chunk = (2, 64, 16) if context.emulated else (64, 2048, 48)
    sizes = {"ttt.batch_documents": batch, "ttt.context_tokens": tokens, "ttt.chunk_tokens": chunk, "ttt.prefix_documents": 0,
             "ttt.document_fraction": 1, **({"ttt.adapters.rank": 4} if context.emulated else {})}
    context.train("ttt_first", context.config(RECORD),
                  record_settings(context, **{"train.budget_seconds": 0, "train.reserve_seconds": 0, "train.steps": 1,
                                              "schedule.by": "step", "train.warmup.steps": 0}))
    weights = context.run_folder("ttt_first") / "weights.safetensors"

    whole = record_settings(context, **{**sizes, "data.validation": documents(context, "long", batch, tokens)})
    plan = context.mulligan("train", context.config(RECORD), "--dry-run", *whole)
    planned = int(re.search(r"^\s+peak\s+([\d,]+) bytes", plan, re.MULTILINE).group(1).replace(",", ""))
    result = adapt(context, weights, "ttt_long", whole)
    figures = context.partial = {"planned_GB": planned / 1e9, "allocated_GB": result["peak_device_memory_bytes"] / 1e9,
                                 "set_up_s": result["setup_seconds"], "tokens": result["with_ttt"]["tokens"],
                                 "tokens_per_s": result["with_ttt"]["tokens"] / result["with_ttt"]["seconds"]}
    if abs(planned - result["peak_device_memory_bytes"]) > 0.05 * planned:
        raise NotOk("the plan is more than 5 % off")

    short = {**sizes, "data.validation": documents(context, "short", batch, 2 * chunk)}
    losses = {}
    for attention in ("library", "own"):
        more = {"backend.attention": attention, "run.require_libraries": "false" if attention == "own" else "true"}
        seen = adapt(context, weights, f"ttt_{attention}", record_settings(context, **{**short, **more}))
        losses[attention] = figures[f"two_chunks_{attention}"] = seen["with_ttt"]["val_loss_nats"]
    require_near("loss of two chunks by the library's attention", losses["library"], losses["own"], 2e-2)
    return figures
