"""A plain PyTorch implementation of test-time training with document adapters, as the peer for speed figures.

The same semantics as `mulligan ttt` with doc_lora and adamw (docs/architecture.md). Documents come in batches by length. For
each chunk, the window up to the chunk's end gives the chunk's losses with the present adapters; then one AdamW step on the
chunk's mean loss follows. It is written as a PyTorch user would write it: the model of torch_model.py with frozen weights,
adapters of all documents of a batch as batched matmuls (baddbmm), and the graph of the scoring reused for the gradient. It
computes logits at the scored positions only, builds no graph if nothing trains, and uses fused AdamW.

  python3 torch_ttt_peer.py RUN/weights.safetensors VALIDATION.bin [--layers ...] [--documents 16 ...]
                            [--device cpu|cuda] [--mode fp32|bf16] [--compile 0|1] [--skip_finished 0|1]
                            [--result RUN/ttt_result.json]

With --skip_finished 0 finished documents stay in the batch as windows of zeros (as in the record's script).

Takes the weights and tokens of a run, and with --seed its random first adapters too, so that the loss must agree with
mulligan's (--result prints both). The base model is not trained in phases. Prints one JSON line.
"""
import argparse
import json
import math
import struct
import time

import numpy
import torch
import torch.nn.functional as F

from fair_peer import tune
from torch_model import Model, model_arguments, peak_memory_bytes


def read_safetensors(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        dtype = {"F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16}[entry["dtype"]]
        tensors[name] = torch.frombuffer(bytearray(data[begin:end]), dtype=dtype).view(entry["shape"]).float()
    return tensors


def load_weights(model, path):
    w = read_safetensors(path)
    blocks = lambda name: torch.stack([w[f"blocks.{i}.{name}"] for i in range(model.o.layers)])
    values = dict(tok_emb=w["tok_emb.weight"], qo_bank=w["qo_bank"], kv_bank=w["kv_bank"], up_bank=w["mlp_up_bank"],
                  down_bank=w["mlp_down_bank"], attn_scale=blocks("attn_scale"), mlp_scale=blocks("mlp_scale"),
                  mix=blocks("resid_mix"), q_gain=blocks("attn.q_gain"), gate_w=blocks("attn.attn_gate_w"),
                  skip_weights=w["skip_weights"], skip_gates=w["skip_gates"], post=w["parallel_post_lambdas"],
                  rho=w["parallel_resid_lambdas"])
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if not parameter.requires_grad:
                parameter.copy_(values[name])


def philox_uniform(seed, purpose, count):
    """The numbers of PhiloxStream(seed, purpose).uniform(0 ... count-1) (framework/core/philox.h)."""
    key_hash = 0xcbf29ce484222325
    for byte in purpose.encode():
        key_hash = ((key_hash ^ byte) * 0x100000001b3) & 0xffffffffffffffff
    index, word = numpy.arange(count, dtype=numpy.uint64), numpy.uint64(0xffffffff)
    c = [index & word, index >> numpy.uint64(32), numpy.full(count, key_hash & 0xffffffff, numpy.uint64),
         numpy.full(count, key_hash >> 32, numpy.uint64)]
    key = [seed & 0xffffffff, seed >> 32]
    for _ in range(10):
        p0, p1 = numpy.uint64(0xD2511F53) * c[0], numpy.uint64(0xCD9E8D57) * c[2]
        c = [(p1 >> numpy.uint64(32)) ^ c[1] ^ numpy.uint64(key[0]), p1 & word,
             (p0 >> numpy.uint64(32)) ^ c[3] ^ numpy.uint64(key[1]), p0 & word]
        key = [(key[0] + 0x9E3779B9) & 0xffffffff, (key[1] + 0xBB67AE85) & 0xffffffff]
    return (((c[1] << numpy.uint64(32)) | c[0]) >> numpy.uint64(11)).astype(numpy.float64) * 2.0 ** -53


class AdaptedModel(Model):
    """Adapters A [documents, rank, inputs] and B [documents, outputs, rank] for each slot of the layer order."""

    def __init__(self, o, documents, draw):
        super().__init__(o)
        self.requires_grad_(False)
        self.scale = o.alpha / o.rank
        d, kv = o.width, o.kv_heads * (o.width // o.heads)
        outputs = dict(q=d, k=kv, v=kv, attention_output=d, mlp_down=d, head=o.vocabulary)
        slots = len(self.encoder) + len(self.decoder)
        p = torch.nn.Parameter
        self.a, self.b = torch.nn.ParameterDict(), torch.nn.ParameterDict()
        for kind, count in outputs.items():
            for slot in range(1 if kind == "head" else slots):
                name = kind if kind == "head" else f"{kind}/{slot}"
                self.a[name] = p(draw(f"{name}/A", (documents, o.rank, d)))
                self.b[name] = p(torch.zeros(documents, count, o.rank))
        self.used = {}

    def adapt(self, kind, n, out):
        slot = self.used[kind] = self.used.get(kind, -1) + 1
        name = kind if kind == "head" else f"{kind}/{slot}"
        hidden = torch.bmm(n, self.a[name][-len(n):].mT)
        return torch.baddbmm(out, hidden, self.b[name][-len(n):].mT, alpha=self.scale)

    def forward(self, ids, positions, targets):
        """Losses of the targets [documents, C] that follow the window positions [documents, C]."""
        self.used = {}
        n = self.features(ids)
        return self.losses(n.gather(1, positions[:, :, None].expand(-1, -1, n.size(-1))), targets)


def find_batches(tokens, o):
    """Documents (start, targets) in batches: ascending by length, the remainder longest, longest batch first."""
    starts = numpy.flatnonzero(tokens == o.bos)
    ends = numpy.append(starts[1:] + 1, len(tokens))  # the next BOS is the last target
    documents = sorted(((int(s), int(e - s - 1)) for s, e in zip(starts, ends) if e - s >= 2), key=lambda d: d[1])
    return [documents[i:i + o.documents] for i in range(0, len(documents), o.documents)][::-1]


class Peer:
    def __init__(self, o):
        self.o = o
        raw = numpy.fromfile(o.validation, "<u2")[512:].astype(numpy.int64)
        self.tokens = raw[:(len(raw) - 1) // o.rows * o.rows + 1]
        self.batches = find_batches(self.tokens, o)
        self.draws, self.models, self.loss, self.scored = 0, {}, 0.0, 0
        full = o.documents
        if any(len(batch) == full for batch in self.batches):
            self.models[full] = self.make(full)
        self.draws = 1  # mulligan counts the draw of the full size also where no batch has it
        for size in {len(batch) for batch in self.batches} - {full}:
            self.models[size] = self.make(size)

    def make(self, documents):
        draw, self.draws = self.draws, self.draws + 1

        def first(name, shape):
            bound, count = 1 / math.sqrt(shape[-1]), math.prod(shape)
            if self.o.seed < 0:
                return torch.empty(shape).uniform_(-bound, bound)
            values = bound * (2.0 * philox_uniform(self.o.seed, f"ttt/{draw}/{name}", count) - 1.0)
            return torch.from_numpy(values.astype(numpy.float32)).view(shape)

        model = AdaptedModel(self.o, documents, first)
        load_weights(model, self.o.weights)
        if self.o.mode == "bf16":
            for parameter in model.parameters():
                if not parameter.requires_grad:
                    parameter.data = parameter.data.bfloat16()
        model.to(self.o.device)
        model.step = torch.compile(model, dynamic=True) if self.o.compile else model
        adapters = [*model.a.values(), *model.b.values()]
        model.optimizer = torch.optim.AdamW(adapters, lr=self.o.lr, betas=(self.o.beta1, self.o.beta2), eps=self.o.eps,
                                            weight_decay=self.o.weight_decay, fused=True)
        return model

    def begin_batch(self, model):
        """Warm start: A stays, B and the optimiser's state start anew."""
        with torch.no_grad():
            for b in model.b.values():
                b.zero_()
            for state in model.optimizer.state.values():
                for value in state.values():
                    value.zero_()

    def score_chunk(self, model, batch, chunk):
        o = self.o
        context = min((chunk + 1) * o.chunk, o.context)
        if o.skip_finished:
            batch = [document for document in batch if document[1] > chunk * o.chunk]  # the last of the batch
        ids = torch.zeros(len(batch), context, dtype=torch.int64)
        positions, targets, weights = (torch.zeros(len(batch), o.chunk, dtype=t)
                                       for t in (torch.int64, torch.int64, torch.float32))
        scored = torch.zeros(len(batch), o.chunk, dtype=torch.bool)
        for row, (start, count) in enumerate(batch):
            first, last = chunk * o.chunk, min(count, (chunk + 1) * o.chunk)
            if first >= last:
                continue
            begin, length = max(0, last - context), last - first
            ids[row, :last - begin] = torch.from_numpy(self.tokens[start + begin:start + last])
            positions[row, :length] = torch.arange(first - begin, last - begin)
            targets[row, :length] = torch.from_numpy(self.tokens[start + first + 1:start + last + 1])
            scored[row, :length] = True
            if last < count:
                weights[row, :length] = 1 / length
        trains, count = bool(weights.any()), int(scored.sum())
        ids, positions, targets, weights, scored = (
            x.to(o.device, non_blocking=True) for x in (ids, positions, targets, weights, scored))
        with torch.set_grad_enabled(trains), torch.autocast(o.device, torch.bfloat16, enabled=o.mode == "bf16"):
            losses = model.step(ids, positions, targets)
        self.loss = self.loss + torch.where(scored, losses.detach().double(), 0.0).sum()  # no waiting for the device
        self.scored += count
        if trains:
            (losses * weights).sum().backward()
            model.optimizer.step()
            model.optimizer.zero_grad(set_to_none=True)

    def run(self):
        start = time.perf_counter()
        for batch in self.batches:
            model = self.models[len(batch)]
            self.begin_batch(model)
            for chunk in range(math.ceil(batch[-1][1] / self.o.chunk)):
                self.score_chunk(model, batch, chunk)
        self.loss = float(self.loss)
        return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("weights")
    parser.add_argument("validation")
    model_arguments(parser, documents=64, context=2048, chunk=48, rank=128, rows=512, bos=1, seed=-1, threads=0, compile=0,
                    skip_finished=0)
    parser.set_defaults(vocabulary=2048, layers=6, width=128, heads=4, kv_heads=2, mlp_hidden=0, parallel_start=4, loop_first=2,
                        loop_last=3, loop_passes=1)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    for name, default in dict(alpha=144.0, lr=1e-4, beta1=0.0, beta2=0.999, eps=1e-10, weight_decay=2.0).items():
        parser.add_argument("--" + name, type=float, default=default)
    parser.add_argument("--mode", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--result", help="ttt_result.json of the run to compare with")
    o = parser.parse_args()
    o.mlp_hidden, o.sequence = o.mlp_hidden or 4 * o.width, o.context
    if o.threads:
        torch.set_num_threads(o.threads)
    tuned = tune() if o.device == "cpu" else ""
    peer = Peer(o)
    warm = peer.batches[-1]  # first calls: compilation, allocator; the shortest documents
    saved = [p.detach().clone() for p in peer.models[len(warm)].a.values()]
    for chunk in range(min(3, math.ceil(warm[-1][1] / o.chunk))):
        peer.score_chunk(peer.models[len(warm)], warm, chunk)
    float(peer.loss)  # waits for the device
    with torch.no_grad():
        for p, value in zip(peer.models[len(warm)].a.values(), saved):
            p.copy_(value)
    peer.loss, peer.scored = 0.0, 0
    seconds = peer.run()
    report = dict(tokens_per_second=peer.scored / seconds, seconds=seconds, tokens=peer.scored,
                  loss_nats=peer.loss / peer.scored, mode=o.mode, compile=o.compile, torch=torch.__version__,
                  tuned=tuned, threads=torch.get_num_threads(), peak_memory_bytes=peak_memory_bytes(o.device))
    if o.result:
        with open(o.result) as file:
            ours = json.load(file)["with_ttt"]
        report["bpb"] = peer.loss / math.log(2) / ours["bytes"]
        report["mulligan"] = ours
    print(json.dumps(report))


if __name__ == "__main__":
    main()
