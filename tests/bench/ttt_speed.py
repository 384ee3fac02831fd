"""Tokens per second of test-time training against PyTorch: quickstart's size and d = 512, L = 11, V = 8192; fp32 and bf16.

  mulligan train configs/quickstart.toml ...                               # RUN: any weights of this size will do
  mulligan train tests/bench/train_speed.toml --set train.steps=1 ...
  python3 tests/bench/ttt_speed.py --python PYTHON_WITH_TORCH --small RUN DATA2048 --large RUN DATA8192 [--threads 2]

`mulligan ttt` and torch_ttt_peer.py adapt and score the same documents, the first of the validation shard, with the same
weights and the same first adapters, one program after the other. PyTorch runs eager and compiled, with finished documents
kept in the batch as in the record's script, and left out (--finished kept,left_out); its best counts. Its time leaves out its first calls, mulligan's
its planning. PyTorch runs with MKL's fast path and huge pages (fair_peer.py), on a machine that is idle; rates are medians of
--rounds in turn. Both must find the same bits per byte. Prints a Markdown table.
"""
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

import fair_peer

ROOT = pathlib.Path(__file__).resolve().parents[2]
SIZES = {
    "small": dict(
        name="quickstart (4 documents, rank 8, context 512, chunk 192)", config="configs/quickstart.toml", tokens=40_000,
        settings={},
        peer=dict(vocabulary=2048, layers=6, width=128, heads=4, kv_heads=2, parallel_start=4, loop_passes=1, documents=4,
                  context=512, chunk=192, rank=8, alpha=8.0, lr=1e-2, weight_decay=1.0)),
    "large": dict(
        name="d=512, L=11, V=8192 (rank 128, context 1024, chunk 192)", config="tests/bench/train_speed.toml",
        tokens=40_000,  # of a set of 5,000 the check of scores, a constant number of passes, takes half of the time
        settings={"ttt.batch_documents": 8, "ttt.context_tokens": 1024, "ttt.chunk_tokens": 192, "ttt.adapters.rank": 128,
                  "ttt.adapters.alpha": 144.0, "ttt.optimizer.lr": 1e-4, "ttt.optimizer.weight_decay": 2.0},
        peer=dict(vocabulary=8192, layers=11, width=512, heads=8, kv_heads=4, parallel_start=8, loop_passes=0, documents=8,
                  context=1024, chunk=192, rank=128, alpha=144.0, lr=1e-4, weight_decay=2.0)),
}
BOS = 1


def first_documents(shard, at_least, path):
    """Writes a shard of the first whole documents with `at_least` tokens together (format: docs/data.md)."""
    raw = shard.read_bytes()
    header, tokens = raw[:1024], memoryview(raw[1024:]).cast("H")
    end = next((i for i in range(at_least, len(tokens)) if tokens[i] == BOS), len(tokens))
    path.write_bytes(header[:8] + struct.pack("<i", end) + header[12:] + bytes(tokens[:end].cast("B")))


def run(command, **environment):
    """Standard output, and the peak memory of the process in bytes."""
    process = subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env={**os.environ, **environment})
    output, errors = process.stdout.read(), process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{' '.join(map(str, command))}\n{output}{errors}")
    return output, usage.ru_maxrss * 1024


def mulligan(options, size, weights, tokenizer, shard, dtype, folder):
    command = [ROOT / options.build / "bin/mulligan", "ttt", weights, "--config", ROOT / size["config"], "--output", folder]
    settings = {"run.threads": options.threads, "run.seed": options.seed, "train.compute_dtype": dtype, "data.validation": shard,
                "data.tokenizer": tokenizer, **size["settings"]}
    _, memory = run(command + fair_peer.settings(options, settings))
    with open(folder / "ttt_result.json") as file:
        return json.load(file)["with_ttt"], memory


def peer(options, size, weights, shard, dtype, compiled, skip):
    command = [options.python, ROOT / "tests/bench/torch_ttt_peer.py", weights, shard, "--mode", dtype, "--threads",
               options.threads, "--compile", int(compiled), "--skip_finished", int(skip), "--seed", options.seed, "--rows", 1]
    for name, value in size["peer"].items():
        command += [f"--{name}", value]
    output, _ = run(command, **fair_peer.ENVIRONMENT)
    return json.loads(output.splitlines()[-1])


def main():
    parser = fair_peer.parser_of(__doc__)
    parser.add_argument("--small", nargs=2, metavar=("RUN", "DATA"), help="run of quickstart's size, its shards")
    parser.add_argument("--large", nargs=2, metavar=("RUN", "DATA"), help="run of train_speed.toml, its shards")
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--dtypes", default="fp32,bf16")
    parser.add_argument("--modes", default="eager,compiled", help="of PyTorch")
    parser.add_argument("--finished", default="kept,left_out", help="documents in PyTorch's batches")
    parser.add_argument("--tokens", type=int, help="of the documents at least; fewer than 40,000 weigh the check of scores too much")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    finished = [form == "left_out" for form in options.finished.split(",")]
    quiet = fair_peer.require_quiet(options.busy)
    tuned = set()

    print("| size | dtype | tokens | mulligan tokens/s | PyTorch | PyTorch, finished left out | ratio to the best "
          "| val_bpb | PyTorch's | memory MB | PyTorch's |\n|---|---|---|---|---|---|---|---|---|---|---|")
    for key in ("small", "large"):
        if not getattr(options, key):
            continue
        size, (source, data) = SIZES[key], map(pathlib.Path, getattr(options, key))
        weights = source / "weights.safetensors"
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            shard = folder / "fineweb_val_000000.bin"
            first_documents(next(data.glob("*_val_*.bin")), options.tokens or size["tokens"], shard)
            for dtype in options.dtypes.split(","):
                ours, forms = [], {}
                for _ in range(options.rounds):
                    ours.append(mulligan(options, size, weights, data / "tokenizer.model", shard, dtype, folder))
                    for skip in finished:
                        for mode in options.modes.split(","):
                            result = peer(options, size, weights, shard, dtype, mode == "compiled", skip)
                            forms.setdefault((skip, mode), []).append(result)
                            tuned.add(result["tuned"])
                medians = {form: fair_peer.spread([r["tokens_per_second"] for r in results]) for form, results in forms.items()}
                fastest = {skip: max((f for f in forms if f[0] == skip), key=lambda f: medians[f][0]) for skip in finished}
                best = max(fastest.values(), key=lambda form: medians[form][0])
                last, theirs, memory = ours[-1][0], forms[best][-1], ours[-1][1]
                if theirs["tokens"] != last["tokens"]:
                    sys.exit(f"{theirs['tokens']} tokens in PyTorch, {last['tokens']} in mulligan: not the same documents")
                rate, shown = fair_peer.spread([scored["tokens"] / scored["seconds"] for scored, _ in ours])
                print(f"| {size['name']} | {dtype} | {last['tokens']:,} | {shown} "
                      f"| {' | '.join(medians[fastest[skip]][1] if skip in fastest else '' for skip in (False, True))} | {rate / medians[best][0]:.2f} | {last['val_bpb']:.5f} "
                      f"| {last['val_bpb'] * theirs['loss_nats'] / last['val_loss_nats']:.5f} | {memory / 1e6:,.0f} "
                      f"| {theirs['peak_memory_bytes'] / 1e6:,.0f} |", flush=True)
    print(f"\nPyTorch: {'; '.join(sorted(tuned))}; {fair_peer.huge_pages()}. {quiet[0].upper()}{quiet[1:]}.")


if __name__ == "__main__":
    main()
