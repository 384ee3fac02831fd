"""One training step of a plain PyTorch implementation (torch_model.py), as the peer for speed figures on a CPU.

Rows of T tokens, causal attention through scaled_dot_product_attention. tests/gpu/torch_peer.py is the one for GPUs.

  python3 torch_peer.py --layers 11 --width 512 ... --mode fp32|bf16 --compile 0|1 --steps N

Prints one JSON line: tokens_per_second (median step), seconds_per_step, peak_memory_bytes (VmHWM), loss of each step.
"""
import argparse
import json
import statistics
import time

import torch

from fair_peer import tune
from torch_model import Model, Training, model_arguments, peak_memory_bytes


def main():
    parser = argparse.ArgumentParser()
    model_arguments(parser, sequence=2048, rows=1, steps=5, threads=0, compile=0)
    parser.add_argument("--mode", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--matrices", choices=["fp32", "bf16"], help="dtype of Muon's iteration; without it that of --mode")
    o = parser.parse_args()
    if o.threads:
        torch.set_num_threads(o.threads)
    tuned = tune()
    torch.manual_seed(1)
    training = Training(Model(o), "cpu", o.mode == "bf16", o.compile, (o.matrices or o.mode) == "bf16")
    seconds, losses = [], []
    for step in range(o.steps + 2):  # two warm-up steps: compilation, allocator
        tokens = torch.randint(0, o.vocabulary, (o.rows, o.sequence + 1))
        start = time.perf_counter()
        losses.append(training.step(tokens[:, :-1], tokens[:, 1:]))
        if step >= 2:
            seconds.append(time.perf_counter() - start)
    median = statistics.median(seconds)
    print(json.dumps(dict(tokens_per_second=o.rows * o.sequence / median, seconds_per_step=median,
                          peak_memory_bytes=peak_memory_bytes(), torch=torch.__version__, threads=torch.get_num_threads(),
                          tuned=tuned, loss=losses)))


if __name__ == "__main__":
    main()
