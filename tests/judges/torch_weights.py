#!/usr/bin/env python3
"""Converts weights that PyTorch saved into a safetensors file, which `mulligan checkpoint import` reads.

    tests/judges/torch_weights.py FILE.pt|FILE.ptz OUT.safetensors

FILE.pt is a state dictionary of torch.save. FILE.ptz is an artifact of the record's script (pull requests 1886 and 2014 of
openai/parameter-golf, COMPRESSOR=brotli); its codes are dequantised. torch.load(weights_only=True) reads both, so that no code of a
file is executed. Needs the packages torch, safetensors and brotli (tests/judges/requirements.txt)."""
import io
import pathlib
import sys

# The banks of the script by their matrices: those of all layers of the first kind, then of the second.
BANKS = {"qo_bank": ("attn.c_q.weight", "attn.proj.weight"), "kv_bank": ("attn.c_k.weight", "attn.c_v.weight"),
         "mlp_up_bank": ("mlp.fc.weight",), "mlp_down_bank": ("mlp.proj.weight",)}


def load(source):
    import torch
    return torch.load(source, map_location="cpu", weights_only=True)


def unpacked(data):
    """Bytes of a .ptz without Brotli and the shuffle of bytes (planes of every second byte)."""
    import brotli
    import numpy
    raw = brotli.decompress(data)
    if raw[:4] != b"BSHF":
        return raw
    stride, planes, out = raw[4], numpy.frombuffer(raw[5:], "uint8"), numpy.empty(len(raw) - 5, "uint8")
    begin = 0
    for plane in range(stride):
        size = len(out[plane::stride])
        out[plane::stride] = planes[begin:begin + size]
        begin += size
    return out.tobytes()


def dequantised(name, note, stored):
    """One tensor of an artifact, as the script's deserialize() computes it."""
    if note.startswith("passthrough"):
        return stored[name].float()
    codes, scales = (".gq", ".gs") if note == "gate_int8_row" else (".q", ".scale")
    codes, scales = stored[name + codes].float(), stored[name + scales].float()
    rows = codes.reshape(len(scales), -1)
    weights = rows * scales[:, None]
    if "awqgrpint" in note:
        fine, size = stored[name + ".awqg_s_hi"].float(), int(stored[name + ".awqg_size"])
        for start in stored[name + ".awqg_start"].tolist():
            weights[:, start:start + size] = rows[:, start:start + size] * fine[:, None]
    if "+lqer" in note:
        suffix = "_a" if "+lqer_asym" in note else ""
        left, right, left_scale, right_scale = (stored[f"{name}.lq{part}{suffix}"].float() for part in ("A", "B", "As", "Bs"))
        if suffix:
            left = left * left_scale
            right = (right.reshape(right_scale.numel(), -1) * right_scale.reshape(-1, 1)).reshape(right.shape)
        else:
            left, right = left * left_scale[:, None], right * right_scale[:, None]
        weights = weights + left @ right
    return weights.reshape(codes.shape)


def banked(tensors):
    import torch
    for bank, kinds in BANKS.items():
        layers = sum(name.endswith(kinds[0]) for name in tensors)
        matrices = [tensors.pop(f"blocks.{layer}.{kind}") for kind in kinds for layer in range(layers)]
        if matrices:
            tensors[bank] = torch.stack(matrices)
    return tensors


def weights_of(path):
    """Tensors by name, in float32."""
    data = pathlib.Path(path).read_bytes()
    if pathlib.Path(path).suffix == ".ptz":
        tables = load(io.BytesIO(unpacked(data)))
        tensors = banked({name: dequantised(name, note, tables["w"]) for name, note in tables["m"].items()})
    else:
        tensors = {name: value.float() for name, value in load(io.BytesIO(data)).items()}
    # safetensors of mulligan has no scalars: a number is a vector of one.
    return {name: value.reshape(1) if value.ndim == 0 else value.contiguous() for name, value in tensors.items()}


def convert(path, output):
    import safetensors.torch
    safetensors.torch.save_file(weights_of(path), output)


if __name__ == "__main__":
    sys.path.pop(0)  # this folder has a safetensors.py of its own
    if len(sys.argv) != 3:
        sys.exit("usage: torch_weights.py FILE.pt|FILE.ptz OUT.safetensors")
    convert(*sys.argv[1:])
