#!/usr/bin/env python3
"""Makes the fixtures qwen2/ and qwen2_untied/: a Qwen2 model written in plain PyTorch, apart from this project's code.

    python3 tests/golden/make_qwen2.py tests/golden [--check-transformers]

Needs torch; with --check-transformers also transformers, whose Qwen2ForCausalLM then has to give the same numbers.

Each folder: config.json and model.safetensors as published models have them (names, BF16 or F32, no lm_head with a tied
head), data.safetensors with what is compared, manifest.json. Values are float64 results of the stored parameters, kept as
F32 (losses as F64). Rotary tables are float32: angle = float32(position) * float32(1 / theta^(2i/h)).
Weights are large (std 0.05 to 0.3, biases 1) so that a missing bias or a wrong rotary pairing cannot hide.
"""
import argparse
import json
import math
import pathlib
import struct

import torch

CASES = {
    "qwen2": dict(vocab_size=97, hidden_size=60, intermediate_size=52, num_hidden_layers=3, num_attention_heads=6,
                  num_key_value_heads=2, head_dim=10, rope_theta=1000000.0, rms_norm_eps=1e-6, tie_word_embeddings=True,
                  stored="F32", tokens=37, boundaries=[0, 13, 14, 37], seed=7),
    "qwen2_untied": dict(vocab_size=61, hidden_size=48, intermediate_size=35, num_hidden_layers=2, num_attention_heads=5,
                         num_key_value_heads=5, head_dim=8, rope_theta=10000.0, rms_norm_eps=1e-5,
                         tie_word_embeddings=False, stored="BF16", tokens=21, boundaries=[0, 21], seed=8),
}
LEARNING_RATE, MOMENTUM, STEPS = 0.05, 0.9, 2


def write_safetensors(path, tensors):
    """tensors: name -> (dtype name, tensor)."""
    torch_dtypes = {"F32": torch.float32, "F64": torch.float64, "BF16": torch.bfloat16, "I32": torch.int32}
    header, chunks, offset = {}, [], 0
    for name, (dtype, tensor) in tensors.items():
        stored = tensor.detach().to(torch_dtypes[dtype]).contiguous()
        raw = stored.reshape(-1).view(torch.uint8).numpy().tobytes()
        header[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": [offset, offset + len(raw)]}
        chunks.append(raw)
        offset += len(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(chunks))


def make_parameters(c, random):
    d, f, h = c["hidden_size"], c["intermediate_size"], c["head_dim"]
    q, kv = c["num_attention_heads"] * h, c["num_key_value_heads"] * h

    def normal(*shape, std, mean=0.0):
        values = mean + std * torch.randn(*shape, generator=random, dtype=torch.float64)
        return values.to(torch.bfloat16 if c["stored"] == "BF16" else torch.float32).double()

    p = {"model.embed_tokens.weight": normal(c["vocab_size"], d, std=0.3)}
    for i in range(c["num_hidden_layers"]):
        at = f"model.layers.{i}."
        p[at + "input_layernorm.weight"] = normal(d, std=0.3, mean=1.0)
        for letter, width in (("q", q), ("k", kv), ("v", kv)):
            p[at + f"self_attn.{letter}_proj.weight"] = normal(width, d, std=0.08)
            p[at + f"self_attn.{letter}_proj.bias"] = normal(width, std=1.0)
        p[at + "self_attn.o_proj.weight"] = normal(d, q, std=0.1)
        p[at + "post_attention_layernorm.weight"] = normal(d, std=0.3, mean=1.0)
        p[at + "mlp.gate_proj.weight"] = normal(f, d, std=0.15)
        p[at + "mlp.up_proj.weight"] = normal(f, d, std=0.15)
        p[at + "mlp.down_proj.weight"] = normal(d, f, std=0.15)
    p["model.norm.weight"] = normal(d, std=0.3, mean=1.0)
    if not c["tie_word_embeddings"]:
        p["lm_head.weight"] = normal(c["vocab_size"], d, std=0.2)
    return p


def norm(x, weight, eps):
    return weight * x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps)


def rotate(x, theta):
    """x [T, heads, h]: (a, b) -> (a cos - b sin, b cos + a sin) with a, b the halves of a head."""
    tokens, _, h = x.shape
    exponent = torch.arange(0, h, 2, dtype=torch.float32) / h
    frequency = 1.0 / torch.tensor(theta, dtype=torch.float32) ** exponent
    angle = torch.arange(tokens, dtype=torch.float32)[:, None] * frequency[None, :]
    cos, sin = angle.cos().double()[:, None, :], angle.sin().double()[:, None, :]
    a, b = x[..., : h // 2], x[..., h // 2 :]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def attend(q, k, v, boundaries):
    tokens, heads, h = q.shape
    group = heads // k.shape[1]
    segment = torch.zeros(tokens, dtype=torch.long)
    for cut in boundaries[1:-1]:
        segment[cut:] += 1
    position = torch.arange(tokens)
    visible = (position[:, None] >= position[None, :]) & (segment[:, None] == segment[None, :])
    heads_out = []
    for head in range(heads):
        scores = q[:, head] @ k[:, head // group].T / math.sqrt(h)
        weights = torch.softmax(scores.masked_fill(~visible, -math.inf), -1)
        heads_out.append(weights @ v[:, head // group])
    return torch.stack(heads_out, 1)


def forward(c, p, tokens, boundaries, taps=None):
    def tap(name, value):
        if taps is not None:
            taps[name] = value
        return value

    eps, h = c["rms_norm_eps"], c["head_dim"]
    x = tap("embed", p["model.embed_tokens.weight"][tokens])
    for i in range(c["num_hidden_layers"]):
        at, name = f"model.layers.{i}.", f"layers.{i}."
        n = tap(name + "norm1", norm(x, p[at + "input_layernorm.weight"], eps))
        q, k, v = (tap(name + letter, (n @ p[at + f"self_attn.{letter}_proj.weight"].T
                                       + p[at + f"self_attn.{letter}_proj.bias"]).view(len(tokens), -1, h))
                   for letter in "qkv")
        q, k = tap(name + "q_rope", rotate(q, c["rope_theta"])), tap(name + "k_rope", rotate(k, c["rope_theta"]))
        o = tap(name + "attn_out", attend(q, k, v, boundaries))
        x = tap(name + "resid1", x + tap(name + "o_proj", o.flatten(1) @ p[at + "self_attn.o_proj.weight"].T))
        n = tap(name + "norm2", norm(x, p[at + "post_attention_layernorm.weight"], eps))
        gate = tap(name + "gate", n @ p[at + "mlp.gate_proj.weight"].T)
        up = tap(name + "up", n @ p[at + "mlp.up_proj.weight"].T)
        act = tap(name + "act", gate / (1 + torch.exp(-gate)) * up)
        x = tap(name + "resid2", x + tap(name + "down", act @ p[at + "mlp.down_proj.weight"].T))
    n = tap("final_norm", norm(x, p["model.norm.weight"], eps))
    head = p["model.embed_tokens.weight" if c["tie_word_embeddings"] else "lm_head.weight"]
    return tap("logits", n @ head.T)


def token_loss(logits, targets):
    return torch.logsumexp(logits, -1) - logits[torch.arange(len(targets)), targets]


def train(c, parameters, tokens, targets, boundaries):
    """STEPS steps of SGD with momentum (buf = momentum buf + g, p -= lr buf) on the same batch."""
    p = {name: value.clone() for name, value in parameters.items()}
    buffers = {name: torch.zeros_like(value) for name, value in p.items()}
    losses = []
    for _ in range(STEPS):
        leaves = {name: value.clone().requires_grad_() for name, value in p.items()}
        loss = token_loss(forward(c, leaves, tokens, boundaries), targets).mean()
        loss.backward()
        losses.append(loss.detach())
        for name, leaf in leaves.items():
            buffers[name] = MOMENTUM * buffers[name] + leaf.grad
            p[name] = p[name] - LEARNING_RATE * buffers[name]
    return p, torch.stack(losses)


def check_transformers(c, folder, tokens, expected):
    from transformers import Qwen2Config, Qwen2ForCausalLM
    keys = [k for k in c if k not in ("stored", "tokens", "boundaries", "seed")]
    config = Qwen2Config(**{k: c[k] for k in keys}, max_position_embeddings=256, attn_implementation="eager")
    model = Qwen2ForCausalLM(config).double()
    missing = model.load_state_dict(expected["parameters"], strict=False)
    assert set(missing.missing_keys) <= {"lm_head.weight"} and not missing.unexpected_keys, missing
    model.tie_weights()
    with torch.no_grad():
        logits = model(tokens[None]).logits[0]
    worst = (logits - expected["logits"]).abs().max() / expected["logits"].square().mean().sqrt()
    print(f"{folder}: transformers differ by {worst:.2e} of the rms of the logits")
    assert worst < 1e-6, worst


def make(name, c, folder, check):
    random = torch.Generator().manual_seed(c["seed"])
    parameters = make_parameters(c, random)
    stream = torch.randint(0, c["vocab_size"], (c["tokens"] + 1,), generator=random)
    tokens, targets = stream[:-1], stream[1:]
    folder.mkdir(parents=True, exist_ok=True)
    one_row = [0, c["tokens"]]
    data = {"tokens": ("I32", tokens), "targets": ("I32", targets),
            "cu_seqlens": ("I32", torch.tensor(c["boundaries"]))}
    for kind, boundaries in (("causal", one_row), ("varlen", c["boundaries"])):
        leaves = {n: v.clone().requires_grad_() for n, v in parameters.items()}
        taps = {}
        logits = forward(c, leaves, tokens, boundaries, taps)
        losses = token_loss(logits, targets)
        losses.mean().backward()
        data[f"{kind}.logits"] = ("F32", logits)
        data[f"{kind}.token_loss"] = ("F64", losses)
        data[f"{kind}.mean_loss"] = ("F64", losses.mean())
        if kind == "varlen":
            for n, leaf in leaves.items():
                data[f"varlen.grad.{n}"] = ("F32", leaf.grad)
            for n, value in taps.items():
                data[f"varlen.tap.{n}"] = ("F32", value)
        if kind == "causal" and check:
            check_transformers(c, name, tokens, {"parameters": parameters, "logits": logits.detach()})
    trained, losses = train(c, parameters, tokens, targets, c["boundaries"])
    data["train.losses"] = ("F64", losses)
    for n, value in trained.items():
        data[f"train.after.{n}"] = ("F32", value)
    write_safetensors(folder / "data.safetensors", data)
    write_safetensors(folder / "model.safetensors", {n: (c["stored"], v) for n, v in parameters.items()})
    published = {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_act": "silu",
                 "attention_dropout": 0.0, "initializer_range": 0.02, "max_position_embeddings": 256,
                 "use_sliding_window": False, "torch_dtype": {"F32": "float32", "BF16": "bfloat16"}[c["stored"]]}
    published |= {k: c[k] for k in c if k not in ("stored", "tokens", "boundaries", "seed")}
    (folder / "config.json").write_text(json.dumps(published, indent=1) + "\n")
    manifest = {"made_by": "tests/golden/make_qwen2.py", "torch": torch.__version__, "seed": c["seed"],
                "tensors": {"causal.*": "one segment", "varlen.*": "segments cu_seqlens", "varlen.grad.*":
                            "gradient of mean_loss", "varlen.tap.*": "named points of the forward pass",
                            "train.after.*": "parameters after the steps, segments cu_seqlens"},
                "train": {"steps": STEPS, "learning_rate": LEARNING_RATE, "momentum": MOMENTUM}}
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--check-transformers", action="store_true")
    arguments = parser.parse_args()
    for case, settings in CASES.items():
        make(case, settings, arguments.out / case, arguments.check_transformers)
