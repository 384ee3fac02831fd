"""How a training step's speed grows: tokens per second and matrix FLOP/s over width, context, batch, threads and ranks.

  python3 tests/bench/growth.py --data DATA2048 [--picture growth.png]     # data as for train_speed.py; the picture needs matplotlib

One axis is varied at a time around one model (the record's architecture, L=6, d=256, V=2048, contexts of 1,024, 4,096 tokens a step).
A point is the median over --rounds runs of `mulligan profile`; a round runs all points once, so that a slower minute touches them alike.
What grows as its work grows keeps its FLOP/s: the last column is the point's share of the FLOP/s of the best one on its axis (of
threads and ranks the speed-up, upside down). Ranks are processes of one thread each under `mulligan launch`, timed by their own log. The machine must be idle (fair_peer.py). Prints a
Markdown table.
"""
import pathlib
import re
import statistics
import tempfile

import fair_peer
from fair_peer import run

ROOT = pathlib.Path(__file__).resolve().parents[2]
BASE = dict(width=256, context=1024, tokens=4096, threads=2, ranks=1)
AXES = dict(width=[64, 128, 256, 512, 768], context=[128, 256, 512, 1024, 2048, 4096], tokens=[1024, 2048, 4096, 8192, 16384],
            threads=[1, 2], ranks=[1, 2])


def settings(options, point, directory):
    heads = max(point["width"] // 64, 1)
    values = {"run.threads": point["threads"], "train.compute_dtype": options.dtype, "optimizer.matrices.compute_dtype": options.dtype,
              "ema.decay": 0, "model.layers": 6, "model.width": point["width"], "model.heads": heads, "model.kv_heads": max(heads // 2, 1),
              "model.vocabulary": 2048, "model.lanes.parallel_start": 4, "train.sequence_length": point["context"],
              "train.tokens_per_step": point["tokens"], "data.train": f"{options.data}/*_train_*.bin", "data.validation": "",
              "data.tokenizer": f"{options.data}/tokenizer.model", "run.directory": directory}
    return fair_peer.settings(options, values)


def profiled(options, point, directory):
    text = run([ROOT / options.build / "bin/mulligan", "profile", ROOT / "tests/bench/train_speed.toml", "--steps", options.steps, *settings(options, point, directory)])
    tokens, gflops = re.search(r"([\d.]+) tokens/s, ([\d.]+) GFLOP/s", text).groups()
    return float(tokens), float(gflops)


def launched(options, point, directory):
    """Tokens per second of `ranks` processes: the median over the steps after the first, from metrics.jsonl."""
    run([ROOT / options.build / "bin/mulligan", "launch", "--standalone", "--nproc-per-node", point["ranks"], "--", "train",
         ROOT / "tests/bench/ranks_speed.toml", "--quiet", "--overwrite", *settings(options, point | {"threads": 1}, directory),
         "--set", "train.micro_batches=2"])
    return fair_peer.steps_rate(directory), None


def measure(options):
    points = [(axis, value) for axis, values in AXES.items() for value in values]
    readings = {point: [] for point in points}
    with tempfile.TemporaryDirectory() as directory:
        for _ in range(options.rounds):
            for axis, value in points:
                one = launched if axis == "ranks" else profiled
                readings[axis, value].append(one(options, BASE | {axis: value}, f"{directory}/{axis}_{value}"))
    return readings


def table(readings):
    print("| axis | value | tokens/s (least to most) | GFLOP/s | of the axis' best |\n|---|---|---|---|---|")
    for axis, values in AXES.items():
        # Ranks have no count of operations of their own; at one model their work goes with their tokens.
        rate = {value: statistics.median(flops if flops is not None else tokens for tokens, flops in readings[axis, value])
                for value in values}
        for value in values:
            flops = readings[axis, value][0][1]
            print(f"| {axis} | {value} | {fair_peer.spread([tokens for tokens, _ in readings[axis, value]])[1]} | "
                  f"{'' if flops is None else f'{rate[value]:.0f}'} | {rate[value] / max(rate.values()):.2f} |")


def picture(readings, file):
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plot
    drawn = [axis for axis in AXES if axis not in ("threads", "ranks")]
    figure, panels = plot.subplots(1, len(drawn), figsize=(4 * len(drawn), 3.2), sharey=True)
    for panel, axis in zip(panels, drawn):
        panel.plot(AXES[axis], [statistics.median(flops for _, flops in readings[axis, value]) for value in AXES[axis]], marker="o")
        panel.set(xscale="log", xlabel=axis, xticks=AXES[axis], xticklabels=AXES[axis], ylim=(0, None))
        panel.minorticks_off()
    panels[0].set_ylabel("GFLOP/s")
    figure.tight_layout()
    figure.savefig(file, dpi=100)


def main():
    parser = fair_peer.parser_of(__doc__)
    parser.add_argument("--data", required=True)
    parser.add_argument("--dtype", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--picture")
    options = parser.parse_args()
    print(fair_peer.require_quiet(options.busy) + f"; {options.dtype}, {options.rounds} rounds\n")
    readings = measure(options)
    table(readings)
    if options.picture:
        picture(readings, options.picture)


main()
