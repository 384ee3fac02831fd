"""An older program, this one and PyTorch in turn, in one session: what a change of the cpu backend was worth.

  python3 tests/bench/before_after.py train --before OLD/build/release --python PYTHON_WITH_TORCH --large RUN DATA8192 [--rounds 3]
  python3 tests/bench/before_after.py ttt   ...    # test-time training of the whole validation text (--tokens: of its first documents)
  python3 tests/bench/before_after.py clock ... --small DATA2048     # bits per byte after equal wall-clock time
  python3 tests/bench/before_after.py ranks ...                      # two ranks of one thread and one process of two; no PyTorch

Sizes, settings and PyTorch's programs are those of train_speed.py (d=512), ttt_speed.py (d=512, eager, finished documents left
out), equal_clock.py (compilation before PyTorch's clock) and ranks_speed.toml. Both programs read this tree's configurations, so an older one must
know all their keys. Medians over the rounds, with the least and the most. The machine must be idle (fair_peer.py). Prints Markdown.
"""
import argparse
import pathlib
import shutil
import statistics
import sys
import tempfile

import equal_clock
import fair_peer
import train_speed
import ttt_speed

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ("before", "after")


def program_of(options, which):
    """The options of the other benchmarks, for one of the two programs."""
    return argparse.Namespace(**vars(options), build=options.before if which == "before" else options.after)


def row(*cells):
    print("| " + " | ".join(cells) + " |", flush=True)


def heading(*names):
    row(*names)
    print("|---" * len(names) + "|", flush=True)


def ratio(readings, which):
    return f"{fair_peer.spread(readings[which])[0] / fair_peer.spread(readings['PyTorch'])[0]:.2f}"


def speeds(dtype, readings, *more):
    row(dtype, *(fair_peer.spread(readings[name])[1] for name in (*PROGRAMS, "PyTorch")), *(ratio(readings, name) for name in PROGRAMS),
        *more)


def train(options):
    size = next(size for size in train_speed.SIZES.values() if size["data"] == "large")
    options.large = options.large[1]
    heading("dtype", "before, tokens/s", "after", "PyTorch compiled", "ratio before", "ratio after", "memory MB: before, after, PyTorch")
    for dtype in options.dtypes.split(","):
        readings, memory = {}, {}
        for _ in range(options.rounds):
            results = {which: train_speed.mulligan(program_of(options, which), size, dtype) for which in PROGRAMS}
            results["PyTorch"] = train_speed.peer(options, size, dtype, True)
            for name, result in results.items():
                readings.setdefault(name, []).append(result["tokens_per_second"])
                memory.setdefault(name, []).append(result["memory"])
        speeds(dtype, readings, ", ".join(f"{statistics.median(values) / 1e6:,.0f}" for values in memory.values()))


def ttt(options):
    size, (source, data) = ttt_speed.SIZES["large"], map(pathlib.Path, options.large)
    weights = source / "weights.safetensors"
    heading("dtype", "before, tokens/s", "after", "PyTorch eager", "ratio before", "ratio after", "tokens", "bits per byte: before, after, PyTorch",
            "memory MB: before, after, PyTorch")
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        shard = folder / "fineweb_val_000000.bin"
        ttt_speed.first_documents(next(data.glob("*_val_*.bin")), options.tokens, shard)
        for dtype in options.dtypes.split(","):
            readings = {}
            for _ in range(options.rounds):
                ours = {which: ttt_speed.mulligan(program_of(options, which), size, weights, data / "tokenizer.model", shard, dtype, folder)
                        for which in PROGRAMS}
                theirs = ttt_speed.peer(options, size, weights, shard, dtype, compiled=False, skip=True)
                for which, (scored, _) in ours.items():
                    readings.setdefault(which, []).append(scored["tokens"] / scored["seconds"])
                readings.setdefault("PyTorch", []).append(theirs["tokens_per_second"])
            scored = ours["after"][0]
            if theirs["tokens"] != scored["tokens"]:
                sys.exit(f"{theirs['tokens']} tokens in PyTorch, {scored['tokens']} in mulligan: not the same documents")
            scores = [result[0]["val_bpb"] for result in ours.values()]
            scores.append(scored["val_bpb"] * theirs["loss_nats"] / scored["val_loss_nats"])
            memory = [result[1] for result in ours.values()] + [theirs["peak_memory_bytes"]]
            speeds(dtype, readings, f"{scored['tokens']:,}", ", ".join(f"{score:.5f}" for score in scores),
                   ", ".join(f"{value / 1e6:,.0f}" for value in memory))


def clock(options):
    options.data, options.order = options.small, "shuffled"
    heading("dtype", "program", "bits per byte by seed", "mean", "PyTorch is worse by", "steps")
    for dtype in options.dtypes.split(","):
        results = {}
        for seed in range(1, options.rounds + 1):
            with tempfile.TemporaryDirectory() as folder:
                for which in PROGRAMS:
                    shutil.rmtree(f"{folder}/run", ignore_errors=True)
                    results.setdefault(which, []).append(equal_clock.mulligan(program_of(options, which), dtype, seed, f"{folder}/run"))
                results.setdefault("PyTorch", []).append(equal_clock.peer(program_of(options, "after"), dtype, seed, False, folder))
        theirs = statistics.mean(result["bpb"] for result in results["PyTorch"])
        for name, rows in results.items():
            mean = statistics.mean(result["bpb"] for result in rows)
            row(dtype, name, ", ".join(f"{result['bpb']:.4f}" for result in rows), f"{mean:.4f}",
                "" if name == "PyTorch" else f"{theirs - mean:+.4f}", ", ".join(f"{result['steps']:,}" for result in rows))


def ranks(options):
    data = options.large[1]
    readings = {}
    for number in range(options.rounds):
        for which in PROGRAMS if number % 2 == 0 else reversed(PROGRAMS):
            mulligan = ROOT / program_of(options, which).build / "bin/mulligan"
            for count, begin in ((1, []), (2, ["launch", "--standalone", "--nproc-per-node", 2, "--"])):
                with tempfile.TemporaryDirectory() as folder:
                    settings = {"run.threads": 2 // count, "run.directory": f"{folder}/run", "data.train": f"{data}/*_train_*.bin",
                                "data.validation": "", "data.tokenizer": f"{data}/tokenizer.model"}
                    fair_peer.run([mulligan, *begin, "train", ROOT / "tests/bench/ranks_speed.toml", "--quiet",
                                   *fair_peer.settings(options, settings)])
                    readings.setdefault((which, count), []).append(fair_peer.steps_rate(f"{folder}/run"))
    heading("program", "one process of two threads, tokens/s", "two ranks of one thread", "ranks relative to threads", "by pairs")
    for which in PROGRAMS:
        one, two = readings[which, 1], readings[which, 2]
        row(which, fair_peer.spread(one)[1], fair_peer.spread(two)[1], f"{fair_peer.spread(two)[0] / fair_peer.spread(one)[0]:.2f}",
            ", ".join(f"{b / a:.2f}" for a, b in zip(one, two)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=["train", "ttt", "clock", "ranks"])
    parser.add_argument("--before", required=True, help="build folder of the older program")
    parser.add_argument("--after", default="build/release", help="build folder of this one")
    parser.add_argument("--python", default=sys.executable, help="Python with PyTorch 2.5 or newer")
    parser.add_argument("--small", help="folder of shards with 2048 pieces")
    parser.add_argument("--large", nargs=2, metavar=("RUN", "DATA"), help="run of train_speed.toml, its shards of 8192 pieces")
    parser.add_argument("--dtypes", default="fp32,bf16")
    parser.add_argument("--rounds", type=int, default=3, help="of clock: seeds")
    parser.add_argument("--seconds", type=float, default=60, help="of clock")
    parser.add_argument("--tokens", type=int, default=10**9, help="of ttt: of the documents at least")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=42)
    fair_peer.add_settings(parser)
    parser.add_argument("--busy", action="store_true", help="measure although other programs run")
    options = parser.parse_args()
    needed = "small" if options.table == "clock" else "large"
    if not getattr(options, needed):
        parser.error(f"the table '{options.table}' needs --{needed}")
    quiet = fair_peer.require_quiet(options.busy)
    options.before = pathlib.Path(options.before).resolve()
    {"train": train, "ttt": ttt, "clock": clock, "ranks": ranks}[options.table](options)
    print(f"\nPyTorch as fair_peer.py tunes it; {fair_peer.huge_pages()}. {quiet[0].upper()}{quiet[1:]}.")


if __name__ == "__main__":
    main()
