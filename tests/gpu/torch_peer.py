"""One training step of the PyTorch model (tests/bench/torch_model.py) as a user would run it on a GPU, the peer of
tests/gpu/run: bf16 with a bf16 residual stream, f32 parameters, torch.compile, fused AdamW, compiled Muon.

  python3 tests/gpu/torch_peer.py --device cuda|cpu --attention sdpa|flex --tokens 98304 --sequence 2048 [--compile 0|1]
                                  [--steps N] [--layers ...]

--attention sdpa: rows of --sequence tokens, plain causal attention (documents see each other): the fastest that
scaled_dot_product_attention has. flex: one row with all --tokens, whose documents (of random lengths, at most --sequence) do
not see each other, by flex_attention with a block mask made anew in each step, which is what packed training needs.

Prints one JSON line: tokens_per_second (median step), seconds_per_step, first_step_seconds (compilation included),
peak_memory_bytes, loss of each step.
"""
import argparse
import json
import pathlib
import random
import statistics
import sys
import time

import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench"))
from torch_model import Model, Training, model_arguments, peak_memory_bytes  # noqa: E402


class PackedModel(Model):
    block_mask = None  # of the step in progress, for flex

    def forward(self, ids, targets, block_mask=None):
        self.block_mask = block_mask
        return super().forward(ids, targets)

    def attend(self, q, k, v):
        if self.o.attention == "sdpa":
            return super().attend(q, k, v)
        heads_first = (x.transpose(1, 2) for x in (q, k, v))
        return flex_attention(*heads_first, block_mask=self.block_mask, enable_gqa=True).transpose(1, 2)


def documents(tokens, longest, draw):
    """The document of each token."""
    numbers, number = [], 0
    while len(numbers) < tokens:
        numbers += [number] * min(longest, max(8, int(draw.lognormvariate(6.0, 0.9))))
        number += 1
    return torch.tensor(numbers[:tokens])


def main():
    parser = argparse.ArgumentParser()
    model_arguments(parser, sequence=2048, tokens=98304, steps=5, compile=1)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--attention", choices=["sdpa", "flex"], default="flex")
    parser.add_argument("--mode", choices=["fp32", "bf16"], default="bf16")
    o = parser.parse_args()
    if o.attention == "flex" and o.device == "cpu":
        parser.error("flex_attention has no gradient on a CPU; give --attention sdpa.")
    begun = time.perf_counter()
    torch.manual_seed(1)
    draw, bf16, flex, document_tokens = random.Random(1), o.mode == "bf16", o.attention == "flex", o.sequence
    if flex:
        o.sequence = o.tokens  # positions of the row, as in a packed row
    number = torch.zeros(o.tokens, dtype=torch.int64, device=o.device)  # document of each token, the same tensor in all steps

    def sees(batch, head, query, key):
        return (query >= key) & (number[query] == number[key])

    make_mask = torch.compile(create_block_mask) if o.compile else create_block_mask
    # Drawn on the CPU: the same first weights on every device.
    training = Training(PackedModel(o, torch.bfloat16 if bf16 else torch.float32).to(o.device), o.device, bf16, o.compile)
    seconds, losses, first = [], [], 0.0
    for step in range(o.steps + 3):  # warm-up steps: compilation, allocator
        tokens = torch.randint(0, o.vocabulary, (o.tokens // o.sequence, o.sequence + 1))
        numbers = documents(o.tokens, document_tokens, draw) if flex else None
        start = time.perf_counter()
        tokens, mask = tokens.to(o.device), None
        if flex:
            number.copy_(numbers)
            mask = make_mask(sees, None, None, o.tokens, o.tokens, device=o.device)
        losses.append(training.step(tokens[:, :-1], tokens[:, 1:], mask))
        first = first or time.perf_counter() - begun
        if step >= 3:
            seconds.append(time.perf_counter() - start)
    median = statistics.median(seconds)
    print(json.dumps(dict(tokens_per_second=o.tokens / median, seconds_per_step=median, first_step_seconds=first,
                          peak_memory_bytes=peak_memory_bytes(o.device), torch=torch.__version__, loss=losses)))


if __name__ == "__main__":
    main()
