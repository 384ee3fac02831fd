#!/usr/bin/env python3
"""Runs the Triton kernels of linear_leaky_relu_squared in Triton's interpreter (on the CPU) and compares them with the
formula in f64. Needs triton, torch and numpy. Prints "ok - WHAT" or "not ok - WHAT".

fp16 stands for bf16: Triton 3.9's interpreter multiplies the bits of bf16 numbers as integers."""

import importlib.util
import os
import pathlib
import sys

os.environ["TRITON_INTERPRET"] = "1"

import numpy as np  # noqa: E402
import torch  # noqa: E402

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "plugins/backends/cuda/triton/linear_leaky_relu_squared.py"
TILE = {"bm": 16, "bn": 32, "bk": 16, "group": 2}
SLOPE = 0.5


def load():
    spec = importlib.util.spec_from_file_location("linear_leaky_relu_squared", SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def numbers(tensor):
    return tensor.double().numpy()


def forward(kernels, x, w, programs):
    """u, y and what the formula makes of x, w and the stored u."""
    (tokens, width), features = x.shape, w.shape[0]
    u, y = torch.full((tokens, features), 7.0, dtype=x.dtype), torch.full((tokens, features), 7.0, dtype=x.dtype)
    kernels.linear_leaky_relu_squared_fwd[(programs,)](x, w, u, y, SLOPE, tokens, width=width, features=features,
                                                       programs=programs, **TILE)
    stored = numbers(u)
    wanted = numbers(x) @ numbers(w).T, np.where(stored > 0, stored, SLOPE * stored) ** 2
    return [(numbers(u), wanted[0]), (numbers(y), wanted[1])]


def backward(kernels, dy, w, u, programs):
    (tokens, width), features = dy.shape, w.shape[1]
    du = torch.full((tokens, features), 7.0, dtype=dy.dtype)
    kernels.linear_leaky_relu_squared_bwd[(programs,)](dy, w, u, du, SLOPE, tokens, width=width, features=features,
                                                       programs=programs, **TILE)
    value = numbers(u)
    return [(numbers(du), (numbers(dy) @ numbers(w)) * np.where(value > 0, 2 * value, 2 * SLOPE**2 * value))]


def main():
    kernels = load()
    generator = np.random.default_rng(1337)
    draw = lambda dtype, *shape: torch.tensor(generator.normal(0, 1, shape), dtype=torch.float32).to(dtype)
    failed = False
    # One tile; tiles cut by every edge; several groups of rows; more programs than tiles.
    for tokens, width, features, programs in [(16, 16, 32, 1), (37, 40, 72, 3), (90, 64, 64, 5), (5, 24, 40, 7)]:
        for dtype, tolerance in [(torch.float32, 2e-5), (torch.float16, 2e-3)]:
            x, up = draw(dtype, tokens, width), draw(dtype, features, width)
            dy, down, u = draw(dtype, tokens, width), draw(dtype, width, features), draw(dtype, tokens, features)
            for name, pairs in [("fwd", forward(kernels, x, up, programs)), ("bwd", backward(kernels, dy, down, u, programs))]:
                good = all(np.allclose(seen, wanted, rtol=tolerance, atol=tolerance * np.abs(wanted).max())
                           for seen, wanted in pairs)
                failed = failed or not good
                print(f"{'ok' if good else 'not ok'} - interpreted linear_leaky_relu_squared_{name}, {str(dtype)[6:]}, "
                      f"[{tokens}, {width}] to {features} features, {programs} programs")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
