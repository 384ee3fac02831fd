"""Training tokens per second against PyTorch: quickstart's size and d = 512, L = 11, T = 2048, V = 8192; fp32 and bf16.

  mulligan prepare TEXT --out DATA2048 --vocab-size 2048
  mulligan prepare TEXT --out DATA8192 --vocab-size 8192
  python3 tests/bench/train_speed.py --python PYTHON_WITH_TORCH --small DATA2048 --large DATA8192 [--threads 2]

One training step (forward, backward, clipping, AdamW, Muon; no average of the weights) of `mulligan profile` and of
torch_peer.py, eager and compiled, one after the other in each of --rounds; rates are medians over the rounds, with the least
and the most. PyTorch runs with MKL's fast path and huge pages (fair_peer.py), on a machine that is idle. Rows of
mulligan are real text whose documents do not attend to each other, PyTorch's are single sequences: up to a few percent
less attention for mulligan at the small size, none worth mentioning at the large one. The share of the peak is that of
matmul_bench's fastest matmul of the same dtype and threads, in the same run. Prints a Markdown table.
"""
import json
import pathlib
import re

import fair_peer
from fair_peer import run

ROOT = pathlib.Path(__file__).resolve().parents[2]
SIZES = {
    "quickstart (d=128, L=6, V=2048, 4 x 512 tokens)": dict(
        config=ROOT / "configs/quickstart.toml", data="small", steps=20,
        peer=dict(vocabulary=2048, layers=6, width=128, heads=4, kv_heads=2, mlp_hidden=512, parallel_start=4, sequence=512,
                  rows=4)),
    "d=512, L=11, V=8192, 2048 tokens": dict(
        config=ROOT / "tests/bench/train_speed.toml", data="large", steps=4, peer=dict(parallel_start=8)),
}


def mulligan(options, size, dtype):
    data = getattr(options, size["data"])
    values = {"run.threads": options.threads, "train.compute_dtype": dtype, "optimizer.matrices.compute_dtype": options.matrices or dtype, "ema.decay": 0,
              "data.train": f"{data}/*_train_*.bin", "data.validation": "", "data.tokenizer": f"{data}/tokenizer.model"}
    text = run([ROOT / options.build / "bin/mulligan", "profile", size["config"], "--steps", size["steps"], *fair_peer.settings(options, values)])
    tokens, gflops = re.search(r"([\d.]+) tokens/s, ([\d.]+) GFLOP/s", text).groups()
    memory = re.search(r"peak memory +([\d.]+) MB", text).group(1)
    return dict(tokens_per_second=float(tokens), gflops=float(gflops), memory=float(memory) * 1e6)


def peer(options, size, dtype, compiled):
    command = [options.python, ROOT / "tests/bench/torch_peer.py", "--mode", dtype, "--matrices", options.matrices or dtype, "--threads", options.threads, "--steps",
               size["steps"], "--compile", int(compiled)]
    for name, value in size["peer"].items():
        command += [f"--{name}", value]
    result = json.loads(run(command, **fair_peer.ENVIRONMENT).splitlines()[-1])
    return dict(tokens_per_second=result["tokens_per_second"], memory=result["peak_memory_bytes"], tuned=result["tuned"])


def peak_gflops(options, dtype):
    name = "f32" if dtype == "fp32" else "bf16"
    text = run([ROOT / options.build / "bin/matmul_bench", f"--benchmark_filter=(forward|input)_{name}/T:4096/d:(512|2048)"],
               MULLIGAN_BENCH_THREADS=str(options.threads))
    return max(float(rate) * (1000 if unit == "T" else 1)
               for rate, unit in re.findall(r" GFLOP/s=([\d.]+)([kTG]?)", text.replace("k/s", "T/s")))


def median(results, value):
    return fair_peer.spread([r[value] for r in results])[0]


def rates(results):
    return fair_peer.spread([r["tokens_per_second"] for r in results])[1]


def main():
    parser = fair_peer.parser_of(__doc__)
    parser.add_argument("--small", required=True, help="folder of shards with 2048 pieces")
    parser.add_argument("--large", required=True, help="folder of shards with 8192 pieces")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--modes", default="eager,compiled", help="of PyTorch")
    parser.add_argument("--dtypes", default="fp32,bf16")
    parser.add_argument("--matrices", choices=["fp32", "bf16"], help="of Muon's iteration, in both; without it the step's dtype")
    parser.add_argument("--sizes", default="small,large")
    options = parser.parse_args()
    modes = options.modes.split(",")
    quiet = fair_peer.require_quiet(options.busy)
    print("| size | dtype | mulligan tokens/s | PyTorch " + " | PyTorch ".join(modes) + " | ratio to the best | share of "
          "the matmul peak | memory MB | PyTorch's |")
    print("|---" * (7 + len(modes)) + "|")
    tuned = set()
    for dtype in options.dtypes.split(","):
        for name, size in SIZES.items():
            if size["data"] not in options.sizes.split(","):
                continue
            ours, theirs, peaks = [], {mode: [] for mode in modes}, []
            for _ in range(options.rounds):
                ours.append(mulligan(options, size, dtype))
                for mode in modes:
                    theirs[mode].append(peer(options, size, dtype, mode == "compiled"))
                    tuned.add(theirs[mode][-1]["tuned"])
                peaks.append(peak_gflops(options, dtype))
            fastest = max(modes, key=lambda mode: median(theirs[mode], "tokens_per_second"))
            ratio = median(ours, "tokens_per_second") / median(theirs[fastest], "tokens_per_second")
            print(f"| {name} | {dtype} | {rates(ours)} | " + " | ".join(rates(theirs[m]) for m in modes)
                  + f" | {ratio:.2f} | {median(ours, 'gflops') / max(peaks):.0%} of {max(peaks):,.0f} GFLOP/s"
                  + f" | {median(ours, 'memory') / 1e6:,.0f} | {median(theirs[fastest], 'memory') / 1e6:,.0f} |", flush=True)
    print(f"\nPyTorch: {'; '.join(sorted(tuned))}; {fair_peer.huge_pages()}. {quiet[0].upper()}{quiet[1:]}.")


if __name__ == "__main__":
    main()
