"""The model and the optimisers of the PyTorch peers (torch_peer.py and torch_ttt_peer.py here, tests/gpu/torch_peer.py).

Same architecture, parameters and optimisers as mulligan (docs/architecture.md); written the way a PyTorch user would write
it: nn.functional, autograd, torch.optim.AdamW, batched Newton-Schulz Muon.
"""
import math

import torch
import torch.nn.functional as F

POLAR = [(8.156554524902461, -22.48329292557795, 15.878769915207462),
         (4.042929935166739, -2.808917465908714, 0.5000178451051316),
         (3.8916678022926607, -2.772484153217685, 0.5060648178503393),
         (3.285753657755655, -2.3681294933425376, 0.46449024233003106),
         (2.3465413258596377, -1.7097828382687081, 0.42323551169305323)]


def norm(x):
    return F.rms_norm(x, (x.size(-1),)).to(x.dtype)  # autocast computes it in f32


class Model(torch.nn.Module):
    """Options `o`: the arguments of model_arguments(). The residual stream has the dtype `stream`; parameters are f32."""

    def __init__(self, o, stream=torch.float32):
        super().__init__()
        self.o, self.stream = o, stream
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

    def attend(self, q, k, v):
        """Causal attention of [rows, sequence, heads, head width] each, by PyTorch's own fused kernels."""
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        if q.is_cuda:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True).transpose(1, 2)
        group = self.o.heads // self.o.kv_heads  # on a CPU faster than enable_gqa
        return F.scaled_dot_product_attention(q, k.repeat_interleave(group, 1), v.repeat_interleave(group, 1),
                                              is_causal=True).transpose(1, 2)

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
        y = self.attend(q, k, v)
        u = F.normalize(v, dim=-1)[:, :, :, None, :]
        y = y.view(batch, length, o.kv_heads, group, dh)
        y = (y - (y * u).sum(-1, keepdim=True) * u).reshape(batch, length, o.heads, dh)
        y = (y * torch.sigmoid(F.linear(n, self.gate_w[i]))[..., None]).to(n.dtype)
        return self.adapt("attention_output", n, F.linear(y.reshape(batch, length, d), self.qo_bank[o.layers + i]))

    def mlp(self, n, i):
        activation = F.leaky_relu(F.linear(n, self.up_bank[i]), 0.5).square()
        return self.adapt("mlp_down", n, F.linear(activation, self.down_bank[i]))

    def block(self, x, x0, i):
        scale = 1 / math.sqrt(i + 1)
        mix, attn_scale, mlp_scale = (p[i].to(x.dtype) for p in (self.mix, self.attn_scale, self.mlp_scale))
        y = mix[0] * x + mix[1] * x0
        y = y + attn_scale * self.attention(norm(y) * scale, i)
        return y + mlp_scale * self.mlp(norm(y) * scale, i)

    def parallel_block(self, lane0, lane1, x0, i):
        scale = 1 / math.sqrt(i + 1)
        mix, attn_scale, mlp_scale, rho, post = (
            p[i].to(x0.dtype) for p in (self.mix, self.attn_scale, self.mlp_scale, self.rho, self.post))
        a = attn_scale * self.attention(norm(mix[0] * lane0 + mix[1] * x0) * scale, i)
        m = mlp_scale * self.mlp(norm(lane1) * scale, i)
        return (rho[0] * lane0 + post[0, 0] * a + post[1, 0] * m, rho[1] * lane1 + post[0, 1] * a + post[1, 1] * m)

    def features(self, ids):
        """What the head reads: the final norm, [rows, sequence, width]."""
        x = x0 = norm(F.embedding(ids, self.tok_emb).to(self.stream))
        skips, lanes = [], None
        for i in self.encoder:
            x = self.block(x, x0, i)
            skips.append(x)
        for j, i in enumerate(self.decoder):
            if lanes is None and i >= self.o.parallel_start > 0:
                lanes = (x, x)
            if j < self.skip_weights.size(0) and skips:
                s = self.skip_weights[j].to(x.dtype) * skips.pop()
                g = torch.sigmoid(self.skip_gates[j]).to(x.dtype)
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
        self.orthogonalise = Muon.orthogonal

    @torch.no_grad()
    def step(self):
        for p, buffer in zip(self.parameters, self.buffers):
            g = p.grad.to(self.dtype)
            buffer.mul_(self.momentum).add_(g)
            u = g + self.momentum * buffer
            u = u / u.float().norm(dim=-1, keepdim=True).clamp_min(1e-7).to(self.dtype)
            x = self.orthogonalise(u)
            p.mul_(1 - self.lr * self.wd)
            p.add_(x, alpha=-self.lr * math.sqrt(max(1, p.size(-2) / p.size(-1))))

    @staticmethod
    def orthogonal(u):
        """Newton-Schulz iteration of a stack of matrices."""
        tall = u.size(-2) > u.size(-1)
        x = u.mT if tall else u
        x = x / (x.flatten(1).float().norm(dim=1)[:, None, None].to(u.dtype) + 1e-7)
        for a, b, c in POLAR:
            s = x @ x.mT
            x = a * x + (b * s + c * (s @ s)) @ x
        return x.mT if tall else x


class Training:
    """One step: forward, backward, clipping, AdamW, Muon. Compiled: the model, and Muon's iteration on a GPU.

    bf16_matrices: whether Muon iterates in bf16; None: as the model computes.
    """

    def __init__(self, model, device, bf16, compiled, bf16_matrices=None):
        self.model, self.device, self.bf16 = model, device, bf16
        matrices = model.matrices()
        named = {id(p) for p in matrices}
        self.adamw = torch.optim.AdamW([p for p in model.parameters() if id(p) not in named], lr=0.02, betas=(0.9, 0.95),
                                       weight_decay=0.02, fused=True)
        self.muon = Muon(matrices, 0.026, 0.97, 0.095, torch.bfloat16 if (bf16 if bf16_matrices is None else bf16_matrices) else torch.float32)
        self.forward = torch.compile(model) if compiled else model
        if compiled and device == "cuda":
            self.muon.orthogonalise = torch.compile(Muon.orthogonal)

    def step(self, *inputs):
        """The loss, before the update; when it returns, the device has finished. Inputs: of the model's forward."""
        with torch.autocast(self.device, torch.bfloat16, enabled=self.bf16):
            loss = self.forward(*inputs)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 0.3)
        self.adamw.step()
        self.muon.step()
        self.model.zero_grad(set_to_none=True)
        return finished(loss, self.device)


def finished(loss, device):
    if device == "cuda":
        torch.cuda.synchronize()
    return loss.item()


def model_arguments(parser, **defaults):
    """Sizes of the model as integer arguments; `defaults` change or add some."""
    for name, default in dict(vocabulary=8192, layers=11, width=512, heads=8, kv_heads=4, mlp_hidden=2048, rope_dims=16,
                              parallel_start=8, loop_first=3, loop_last=5, loop_passes=0, **defaults).items():
        parser.add_argument("--" + name, type=int, default=default)


def peak_memory_bytes(device="cpu"):
    """Of the GPU's memory what PyTorch took from the driver; else the largest resident size of the process."""
    if device == "cuda":
        return torch.cuda.max_memory_reserved()
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
