"""A plain PyTorch implementation of the model and of one training step, as the peer for speed figures.

Same architecture, parameters and optimisers as mulligan (docs/architecture.md); written the way a PyTorch user would write
it: nn.functional, autograd, torch.optim.AdamW, batched Newton-Schulz Muon. Rows of T tokens, causal attention through
scaled_dot_product_attention, which is PyTorch's fastest CPU attention.

  python3 torch_peer.py --layers 11 --width 512 ... --mode fp32|bf16 --compile 0|1 --steps N

Prints one JSON line: tokens_per_second (median step), seconds_per_step, peak_memory_bytes (VmHWM), loss of each step.
"""
import argparse
import json
import math
import statistics
import time

import torch
import torch.nn.functional as F

POLAR = [(8.156554524902461, -22.48329292557795, 15.878769915207462),
         (4.042929935166739, -2.808917465908714, 0.5000178451051316),
         (3.8916678022926607, -2.772484153217685, 0.5060648178503393),
         (3.285753657755655, -2.3681294933425376, 0.46449024233003106),
         (2.3465413258596377, -1.7097828382687081, 0.42323551169305323)]


def norm(x):
    return F.rms_norm(x, (x.size(-1),))


class Model(torch.nn.Module):
    def __init__(self, o):
        super().__init__()
        self.o = o
        d, layers, kv = o.width, o.layers, o.kv_heads * (o.width // o.heads)
        p = torch.nn.Parameter

        def orthogonal(count, rows, columns):
            return torch.stack([torch.nn.init.orthogonal_(torch.empty(rows, columns)) for _ in range(count)])

        self.tok_emb = p(torch.randn(o.vocabulary, d) * 0.005)
        self.qo_bank = p(torch.cat([orthogonal(layers, d, d), torch.zeros(layers, d, d)]))
        self.kv_bank = p(orthogonal(2 * layers, kv, d))
        self.up_bank = p(orthogonal(layers, o.mlp_hidden, d))
        self.down_bank = p(torch.zeros(layers, d, o.mlp_hidden))
        self.attn_scale = p(torch.ones(layers, d))
        self.mlp_scale = p(torch.ones(layers, d))
        self.mix = p(torch.stack([torch.stack([torch.ones(d), torch.zeros(d)]) for _ in range(layers)]))
        self.q_gain = p(torch.full((layers, o.heads), 5.0))
        self.gate_w = p(torch.randn(layers, o.heads, d) * 0.005)
        order = list(range(layers))
        if o.loop_passes:
            order = (order[:o.loop_first] + order[o.loop_first:o.loop_last + 1] * (1 + o.loop_passes)
                     + order[o.loop_last + 1:])
        self.encoder, self.decoder = order[:len(order) // 2], order[len(order) // 2:]
        rows = min(len(self.encoder), len(self.decoder))
        self.skip_weights = p(torch.ones(rows, d))
        self.skip_gates = p(torch.zeros(rows, d))
        self.post = p(torch.ones(layers, 2, 2))
        self.rho = p(torch.full((layers, 2), 1.1))
        half = o.rope_dims // 2
        frequency = 10000.0 ** (-torch.arange(half).float() * 2 / o.rope_dims)
        angle = torch.outer(torch.arange(o.sequence).float(), frequency)
        self.register_buffer("cos", angle.cos()[None, :, None, :])
        self.register_buffer("sin", angle.sin()[None, :, None, :])

    def matrices(self):
        return [self.qo_bank, self.kv_bank, self.up_bank, self.down_bank]

    def adapt(self, kind, n, out):
        """Called with each projection's result; test-time training (torch_ttt_peer.py) adds its adapters here."""
        return out

    def rotate(self, x):
        half, length = self.o.rope_dims // 2, x.size(1)
        a, b, rest = x[..., :half], x[..., half:2 * half], x[..., 2 * half:]
        cos, sin = self.cos[:, :length].to(x.dtype), self.sin[:, :length].to(x.dtype)
        return torch.cat([a * cos + b * sin, b * cos - a * sin, rest], dim=-1)

    def attention(self, n, i):
        o = self.o
        batch, length, d = n.shape
        dh = d // o.heads
        q = self.adapt("q", n, F.linear(n, self.qo_bank[i])).view(batch, length, o.heads, dh)
        k = self.adapt("k", n, F.linear(n, self.kv_bank[i])).view(batch, length, o.kv_heads, dh)
        v = self.adapt("v", n, F.linear(n, self.kv_bank[o.layers + i])).view(batch, length, o.kv_heads, dh)
        q = self.rotate(norm(q)) * self.q_gain[i].to(q.dtype)[:, None]
        k = self.rotate(norm(k))
        group = o.heads // o.kv_heads
        y = F.scaled_dot_product_attention(
            q.transpose(1, 2), k.repeat_interleave(group, 2).transpose(1, 2),
            v.repeat_interleave(group, 2).transpose(1, 2), is_causal=True).transpose(1, 2)
        u = F.normalize(v, dim=-1)[:, :, :, None, :]
        y = y.view(batch, length, o.kv_heads, group, dh)
        y = (y - (y * u).sum(-1, keepdim=True) * u).reshape(batch, length, o.heads, dh)
        y = y * torch.sigmoid(F.linear(n, self.gate_w[i]))[..., None]
        return self.adapt("attention_output", n, F.linear(y.reshape(batch, length, d), self.qo_bank[o.layers + i]))

    def mlp(self, n, i):
        activation = F.leaky_relu(F.linear(n, self.up_bank[i]), 0.5).square()
        return self.adapt("mlp_down", n, F.linear(activation, self.down_bank[i]))

    def block(self, x, x0, i):
        scale = 1 / math.sqrt(i + 1)
        y = self.mix[i, 0] * x + self.mix[i, 1] * x0
        y = y + self.attn_scale[i] * self.attention(norm(y) * scale, i)
        return y + self.mlp_scale[i] * self.mlp(norm(y) * scale, i)

    def parallel_block(self, lane0, lane1, x0, i):
        scale = 1 / math.sqrt(i + 1)
        a = self.attn_scale[i] * self.attention(norm(self.mix[i, 0] * lane0 + self.mix[i, 1] * x0) * scale, i)
        m = self.mlp_scale[i] * self.mlp(norm(lane1) * scale, i)
        return (self.rho[i, 0] * lane0 + self.post[i, 0, 0] * a + self.post[i, 1, 0] * m,
                self.rho[i, 1] * lane1 + self.post[i, 0, 1] * a + self.post[i, 1, 1] * m)

    def features(self, ids):
        """What the head reads: the final norm, [rows, sequence, width]."""
        x = x0 = norm(F.embedding(ids, self.tok_emb))
        skips, lanes = [], None
        for i in self.encoder:
            x = self.block(x, x0, i)
            skips.append(x)
        for j, i in enumerate(self.decoder):
            if lanes is None and i >= self.o.parallel_start > 0:
                lanes = (x, x)
            if j < self.skip_weights.size(0) and skips:
                s = self.skip_weights[j] * skips.pop()
                g = torch.sigmoid(self.skip_gates[j])
                if lanes is None:
                    x = torch.lerp(s, x, g)
                else:
                    lanes = (torch.lerp(s, lanes[0], g), lanes[1])
            if lanes is None:
                x = self.block(x, x0, i)
            else:
                lanes = self.parallel_block(*lanes, x0, i)
        if lanes is not None:
            x = (lanes[0] + lanes[1]) / 2
        return norm(x)

    def losses(self, n, targets):
        """Loss of each target in nats, from the features n that precede them."""
        z = self.adapt("head", n, F.linear(n, self.tok_emb))
        z = 30.0 * torch.tanh(z / 30.0)
        return F.cross_entropy(z.float().view(-1, z.size(-1)), targets.reshape(-1), reduction="none").view_as(targets)

    def forward(self, ids, targets):
        return self.losses(self.features(ids), targets).mean()


class Muon:
    def __init__(self, parameters, lr, momentum, weight_decay, dtype):
        self.parameters, self.lr, self.momentum, self.wd, self.dtype = parameters, lr, momentum, weight_decay, dtype
        self.buffers = [torch.zeros_like(p, dtype=dtype) for p in parameters]

    @torch.no_grad()
    def step(self):
        for p, buffer in zip(self.parameters, self.buffers):
            g = p.grad.to(self.dtype)
            buffer.mul_(self.momentum).add_(g)
            u = g + self.momentum * buffer
            u = u / u.float().norm(dim=-1, keepdim=True).clamp_min(1e-7).to(self.dtype)
            tall = u.size(-2) > u.size(-1)
            x = u.mT if tall else u
            x = x / (x.flatten(1).float().norm(dim=1)[:, None, None].to(self.dtype) + 1e-7)
            for a, b, c in POLAR:
                s = x @ x.mT
                x = a * x + (b * s + c * (s @ s)) @ x
            x = x.mT if tall else x
            p.mul_(1 - self.lr * self.wd)
            p.add_(x, alpha=-self.lr * math.sqrt(max(1, p.size(-2) / p.size(-1))))


def peak_memory_bytes():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


def main():
    parser = argparse.ArgumentParser()
    for name, default in dict(vocabulary=8192, layers=11, width=512, heads=8, kv_heads=4, mlp_hidden=2048, rope_dims=16,
                              parallel_start=8, loop_first=3, loop_last=5, loop_passes=0, sequence=2048, rows=1,
                              steps=5, threads=0, compile=0).items():
        parser.add_argument("--" + name, type=int, default=default)
    parser.add_argument("--mode", choices=["fp32", "bf16"], default="fp32")
    o = parser.parse_args()
    if o.threads:
        torch.set_num_threads(o.threads)
    torch.manual_seed(1)
    model = Model(o)
    bf16 = o.mode == "bf16"
    matrices = model.matrices()
    named = {id(p) for p in matrices}
    adamw = torch.optim.AdamW([p for p in model.parameters() if id(p) not in named], lr=0.02, betas=(0.9, 0.95),
                              weight_decay=0.02, fused=True)
    muon = Muon(matrices, 0.026, 0.97, 0.095, torch.bfloat16 if bf16 else torch.float32)
    step_model = torch.compile(model) if o.compile else model
    seconds, losses = [], []
    for step in range(o.steps + 2):  # two warm-up steps: compilation, allocator
        tokens = torch.randint(0, o.vocabulary, (o.rows, o.sequence + 1))
        start = time.perf_counter()
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            loss = step_model(tokens[:, :-1], tokens[:, 1:])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.3)
        adamw.step()
        muon.step()
        model.zero_grad(set_to_none=True)
        losses.append(loss.item())
        if step >= 2:
            seconds.append(time.perf_counter() - start)
    median = statistics.median(seconds)
    print(json.dumps(dict(tokens_per_second=o.rows * o.sequence / median, seconds_per_step=median,
                          peak_memory_bytes=peak_memory_bytes(), torch=torch.__version__, threads=torch.get_num_threads(),
                          loss=losses)))


if __name__ == "__main__":
    main()
