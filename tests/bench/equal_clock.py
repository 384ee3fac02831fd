"""Bits per byte after equal wall-clock time of training: mulligan and PyTorch on the same data, model, settings and machine.

  python3 tests/bench/equal_clock.py --python PYTHON_WITH_TORCH --data DATA2048 [--seconds 130] [--seeds 1,2,3]

Runs configs/quickstart.toml and torch_trainer.py (its settings in PyTorch, compiled), one after the other for each seed. PyTorch
compiles before its clock starts; with --compilation both it also runs once with the compilation inside the clock. mulligan's clock
counts everything. `mulligan eval` scores all weights. Both read the shards in the same order, --order. One difference remains: in
PyTorch's windows documents attend to each other, in mulligan's packed rows they do not. The machine must be idle
(fair_peer.py). Prints a Markdown table.
"""
import json
import pathlib
import statistics
import tempfile

import fair_peer
from fair_peer import run

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONFIG = ROOT / "configs/quickstart.toml"
MODEL = dict(vocabulary=2048, layers=6, width=128, heads=4, kv_heads=2, mlp_hidden=512, parallel_start=4, loop_first=2, loop_last=3,
             loop_passes=1)


def settings(options, dtype, folder):
    values = {"data.train": f"{options.data}/*_train_*.bin", "data.validation": f"{options.data}/*_val_*.bin",
              "data.tokenizer": f"{options.data}/tokenizer.model", "run.directory": folder, "run.threads": options.threads, "data.order": options.order,
              "train.compute_dtype": dtype, "optimizer.matrices.compute_dtype": dtype, "train.budget_seconds": options.seconds}
    return fair_peer.settings(options, values)


def mulligan(options, dtype, seed, folder):
    program = ROOT / options.build / "bin/mulligan"
    run([program, "train", CONFIG, "--quiet", "--overwrite", *settings(options, dtype, folder), "--set", f"run.seed={seed}"])
    result = json.loads((pathlib.Path(folder) / "result.json").read_text())
    return dict(bpb=result["val_bpb"], steps=result["steps"])


def peer(options, dtype, seed, counted, folder):
    weights = pathlib.Path(folder) / "peer.safetensors"
    command = [options.python, ROOT / "tests/bench/torch_trainer.py", options.data, weights, "--like", f"{folder}/run/weights.safetensors", "--seconds", options.seconds, "--mode",
               dtype, "--seed", seed, "--order", options.order, "--threads", options.threads, "--count_compilation", int(counted)]
    for name, value in MODEL.items():
        command += [f"--{name}", value]
    trained = json.loads(run(command, **fair_peer.ENVIRONMENT).splitlines()[-1])
    out = run([ROOT / options.build / "bin/mulligan", "eval", weights, "--config", CONFIG, "--quiet", *settings(options, "fp32", folder)])
    bpb = float(out.split("val_bpb")[1].split()[0])
    return dict(bpb=bpb, steps=trained["steps"], compilation=trained["compilation_seconds"], tuned=trained["tuned"], curve=trained["curve"])


def main():
    parser = fair_peer.parser_of(__doc__)
    parser.add_argument("--data", required=True, help="folder of shards with 2048 pieces")
    parser.add_argument("--seconds", type=float, default=130)
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--dtypes", default="fp32,bf16")
    parser.add_argument("--order", choices=["spans", "shuffled"], default="shuffled", help="of the rows: data.order")
    parser.add_argument("--compilation", choices=["before", "both"], default="both", help="PyTorch's, and its clock")
    options = parser.parse_args()
    quiet = fair_peer.require_quiet(options.busy)
    counted = [False, True] if options.compilation == "both" else [False]
    tuned = set()
    print("| dtype | program | bits per byte by seed | mean | worse than mulligan | steps | compilation, s |\n|---|---|---|---|---|---|---|")
    for dtype in options.dtypes.split(","):
        results = {}
        for seed in options.seeds.split(","):
            with tempfile.TemporaryDirectory() as folder:
                results.setdefault("mulligan", []).append(mulligan(options, dtype, seed, f"{folder}/run"))
                for count in counted:
                    name = "PyTorch, compilation in its clock" if count else "PyTorch, compilation before its clock"
                    results.setdefault(name, []).append(peer(options, dtype, seed, count, folder))
                    tuned.add(results[name][-1]["tuned"])
        ours = statistics.mean(r["bpb"] for r in results["mulligan"])
        for name, rows in results.items():
            mean = statistics.mean(r["bpb"] for r in rows)
            worse = "" if name == "mulligan" else f"{mean - ours:+.4f}"
            columns = [", ".join(f"{r[value]:{form}}" for r in rows if value in r)
                       for value, form in [("bpb", ".4f"), ("steps", "d"), ("compilation", ".0f")]]
            print(f"| {dtype} | {name} | {columns[0]} | {mean:.4f} | {worse} | {columns[1]} | {columns[2]} |", flush=True)
    print(f"\n{options.seconds:g} s each. PyTorch: {'; '.join(sorted(tuned))}; {fair_peer.huge_pages()}. {quiet[0].upper()}{quiet[1:]}.")


if __name__ == "__main__":
    main()
