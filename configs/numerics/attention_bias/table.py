#!/usr/bin/env python3
"""The table of a sweep's trainings (run): configs/numerics/attention_bias/table.py DIRECTORY"""
import json
import pathlib
import re
import statistics
import sys

COLUMNS = {
    "validation loss, nats": (4, lambda run: run["loss"]),
    "rows with repeated maxima, %": (2, lambda run: 100 * mean(layer["repeated_rows"] for layer in run["layers"])),
    "error, ulp": (4, lambda run: mean(layer["error_ulp"] for layer in run["layers"])),
    "delta's error / delta": (6, lambda run: mean(layer["delta_error"] / layer["delta_norm"] for layer in run["layers"])),
    "largest logit": (2, lambda run: max(layer["largest_logit"] for layer in run["layers"])),
    "largest spectral norm": (3, lambda run: max(run["spectral_norm"].values())),
    "tokens/s": (0, lambda run: run["tokens_per_second"]),
}


def mean(values):
    return statistics.fmean(values)


def read_run(folder):
    """What a finished training says: its result, and its last look at attention."""
    result = json.loads((folder / "result.json").read_text())
    looks = [event for event in map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
             if event["event"] == "attention"]
    if not looks:
        sys.exit(f"table.py: {folder}/metrics.jsonl has no event \"attention\"; set metrics.attention_every.")
    return {**looks[-1], "loss": result["val_loss_nats"], "tokens_per_second": result["tokens_per_second"]}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    directory = pathlib.Path(sys.argv[1])
    sweep = directory / "sweep.json"
    if not sweep.exists():
        sys.exit(f"table.py: there is no '{sweep}'; configs/numerics/attention_bias/run makes it.")
    print("| | " + " | ".join(COLUMNS) + " | n |")
    print("|---" * (len(COLUMNS) + 2) + "|")
    for row in json.loads(sweep.read_text())["rows"]:
        # Where a sweep trains: rows of the sweep's own configuration share a folder.
        folder = re.sub(r"[^A-Za-z0-9.]", "_", row["name"]) if row["set"] or row["config"] else "shared"
        runs = [read_run(directory / folder / f"seed_{cell['seed']}") for cell in row["seeds"]]
        cells = []
        for digits, figure in COLUMNS.values():
            figures = [figure(run) for run in runs]
            spread = statistics.stdev(figures) if len(figures) > 1 else 0.0
            cells.append(f"{mean(figures):.{digits}f} ± {spread:.{digits}f}")
        print(f"| {row['name']} | " + " | ".join(cells) + f" | {len(runs)} |")


if __name__ == "__main__":
    main()
