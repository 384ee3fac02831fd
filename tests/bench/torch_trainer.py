"""Trains the PyTorch model of torch_model.py for some seconds, as the peer of equal_clock.py.

The settings of configs/quickstart.toml: AdamW for embedding and vectors, Muon for banks, its momentum's warm-up, a warmdown
over the budget, clipping, an average of the weights, the loop from a share of the budget on. Rows are taken from the
training shards in their order or in random order, as mulligan takes them (attention crosses documents in them). Before the clock both forms of the model run once, so compiled; with
--count_compilation 1 the clock starts before that. Writes the average under mulligan's names; prints one JSON line.

  python3 torch_trainer.py DATA WEIGHTS.safetensors --seconds 130 --mode fp32|bf16 --seed 1 --like RUN/weights.safetensors [--layers ...]
"""
import argparse
import itertools
import json
import pathlib
import struct
import time

import numpy
import torch

from fair_peer import tune
from torch_model import Model, Muon, model_arguments

WARMDOWN, LEAST, LOOP_FROM, DECAY, CLIP = 0.75, 0.05, 0.35, 0.99, 1.0


def tokens_of(folder):
    """All tokens of the training shards (docs/data.md: a header of 1,024 bytes, then 16 bits each)."""
    shards = sorted(pathlib.Path(folder).glob("*_train_*.bin"))
    return torch.from_numpy(numpy.concatenate([numpy.fromfile(s, numpy.uint16, offset=1024) for s in shards]).astype(numpy.int64))


def named_weights(model):
    """Parameters under mulligan's names."""
    yield from [("tok_emb.weight", model.tok_emb), ("qo_bank", model.qo_bank), ("kv_bank", model.kv_bank),
                ("mlp_up_bank", model.up_bank), ("mlp_down_bank", model.down_bank), ("skip_weights", model.skip_weights),
                ("skip_gates", model.skip_gates), ("parallel_post_lambdas", model.post), ("parallel_resid_lambdas", model.rho)]
    for name, stacked in [("attn_scale", model.attn_scale), ("mlp_scale", model.mlp_scale), ("resid_mix", model.mix),
                          ("attn.q_gain", model.q_gain), ("attn.attn_gate_w", model.gate_w)]:
        for i in range(model.o.layers):
            yield f"blocks.{i}.{name}", stacked[i]


def save(path, model, like):
    """With what the weights file `like` says of the data, whose tokenizer mulligan asks for."""
    with open(like, "rb") as file:
        theirs = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))["__metadata__"]
    header, data = {"__metadata__": {"data": theirs["data"]}}, b""
    for name, tensor in named_weights(model):
        values = tensor.detach().float().contiguous().numpy().tobytes()
        header[name] = dict(dtype="F32", shape=list(tensor.shape), data_offsets=[len(data), len(data) + len(values)])
        data += values
    text = json.dumps(header).encode()
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + data)


class Trainer:
    def __init__(self, o):
        self.o, self.model = o, Model(o)
        self.looped = (self.model.encoder, self.model.decoder)
        half = o.layers // 2
        self.plain = (list(range(half)), list(range(half, o.layers)))
        self.forward = torch.compile(self.model) if o.compile else self.model
        banks = self.model.matrices()
        vectors = [p for p in self.model.parameters() if p is not self.model.tok_emb and all(p is not b for b in banks)]
        self.adamw = torch.optim.AdamW([dict(params=[self.model.tok_emb], lr=0.02, weight_decay=0.02),
                                        dict(params=vectors, lr=0.01, weight_decay=0.0)], betas=(0.9, 0.95), fused=True)
        self.muon = Muon(banks, 0.02, 0.95, 0.02, torch.bfloat16 if o.mode == "bf16" else torch.float32)
        self.bases = [group["lr"] for group in self.adamw.param_groups]
        self.average = [p.detach().clone() for p in self.model.parameters()]

    def gradients(self, rows, looped):
        self.model.encoder, self.model.decoder = self.looped if looped else self.plain
        with torch.autocast("cpu", torch.bfloat16, enabled=self.o.mode == "bf16"):
            loss = self.forward(rows[:, :-1], rows[:, 1:])
        loss.backward()
        return loss.item()

    def step(self, rows, number, progress):
        """`progress`: the share of the budget that is spent."""
        factor = 1.0 if progress < 1 - WARMDOWN else LEAST + (1 - LEAST) * (1 - progress) / WARMDOWN
        loss = self.gradients(rows, progress >= LOOP_FROM)
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), CLIP)
        for group, base in zip(self.adamw.param_groups, self.bases):
            group["lr"] = base * factor
        self.muon.lr, self.muon.momentum = 0.02 * factor, 0.85 + 0.1 * min(number / 100, 1)
        self.adamw.step()
        self.muon.step()
        self.model.zero_grad(set_to_none=True)
        with torch.no_grad():
            torch._foreach_lerp_(self.average, list(self.model.parameters()), 1 - DECAY)
        return loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("weights")
    parser.add_argument("--like", required=True, help="mulligan's weights.safetensors of a run on the same data")
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--order", choices=["spans", "shuffled"], default="shuffled", help="data.order")
    parser.add_argument("--mode", choices=["fp32", "bf16"], default="fp32")
    model_arguments(parser, sequence=512, rows=4, threads=2, compile=1, count_compilation=0, seed=1, report_every=10)
    o = parser.parse_args()
    torch.set_num_threads(o.threads)
    tuned = tune()
    torch.manual_seed(o.seed)
    tokens, trainer = tokens_of(o.data), Trainer(o)

    def passes():
        all_starts = torch.arange(0, len(tokens) - o.sequence, o.sequence)
        while True:
            yield from (all_starts[torch.randperm(len(all_starts))] if o.order == "shuffled" else all_starts).tolist()

    starts = passes()

    def rows():
        return torch.stack([tokens[s:s + o.sequence + 1] for s in itertools.islice(starts, o.rows)])

    begun = time.perf_counter()
    for looped in (False, True):  # compiled, without an update
        trainer.gradients(rows(), looped)
        trainer.model.zero_grad(set_to_none=True)
    compilation = time.perf_counter() - begun
    if not o.count_compilation:
        begun = time.perf_counter()
    number, spent, losses, curve = 0, time.perf_counter() - begun, [], []
    while spent < o.seconds:
        losses.append(trainer.step(rows(), number, spent / o.seconds))
        number, spent = number + 1, time.perf_counter() - begun
        if number % o.report_every == 0:
            curve.append([spent, sum(losses[-o.report_every:]) / o.report_every])
    with torch.no_grad():
        for parameter, average in zip(trainer.model.parameters(), trainer.average):
            parameter.copy_(average)
    save(o.weights, trainer.model, o.like)
    print(json.dumps(dict(steps=number, seconds=spent, compilation_seconds=compilation, last_loss=losses[-1], curve=curve, tuned=tuned)))


if __name__ == "__main__":
    main()
