#!/usr/bin/env python3
"""Runs the Triton kernels of softcap_ce in Triton's interpreter (on the CPU) and compares them with the formula in
f64. Needs triton, torch and numpy. Prints "ok - WHAT" or "not ok - WHAT"."""

import importlib.util
import os
import pathlib
import sys

os.environ["TRITON_INTERPRET"] = "1"

import numpy as np  # noqa: E402
import torch  # noqa: E402

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "plugins/losses/softcap_ce/triton/softcap_ce.py"
BLOCK = 256  # smaller than most vocabularies here, so that rows take several turns and end inside of one


def load():
    spec = importlib.util.spec_from_file_location("softcap_ce", SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def expected(x, targets, upstream, cap):
    """loss, lse, dlogits of ../../plugins/losses/softcap_ce/softcap_ce_kernels.h in f64."""
    z = cap * np.tanh(x / cap) + cap if cap > 0 else x
    slope = 1 - np.tanh(x / cap) ** 2 if cap > 0 else np.ones_like(x)
    highest = z.max(axis=1)
    lse = highest + np.log(np.exp(z - highest[:, None]).sum(axis=1))
    loss = np.zeros(len(targets))
    gradient = np.exp(z - lse[:, None])
    for row, target in enumerate(targets):
        if target >= 0:
            loss[row] = lse[row] - z[row, target] if target < x.shape[1] else np.nan
            if target < x.shape[1]:
                gradient[row, target] -= 1
            else:
                gradient[row] = np.nan
    gradient *= upstream[:, None] * slope
    gradient[(targets < 0) | ((upstream == 0) & (targets < x.shape[1]))] = 0
    lse[targets < 0] = 0
    return loss, lse, gradient


def run(kernels, x, targets, upstream, cap, in_place):
    rows, vocabulary = x.shape
    loss, lse = torch.full((rows,), 7.0), torch.full((rows,), 7.0)
    kernels.softcap_ce_fwd[(rows,)](x, targets, loss, lse, cap, vocabulary, block=BLOCK)
    gradient = x if in_place else torch.full_like(x, 7.0)
    blocks = (vocabulary + BLOCK - 1) // BLOCK
    kernels.softcap_ce_bwd[(rows, blocks)](x, targets, lse, upstream, gradient, cap, vocabulary, block=BLOCK)
    return [t.float().numpy().astype(np.float64) for t in (loss, lse, gradient)]


def close(actual, wanted, tolerance, scale):
    return bool(np.allclose(actual, wanted, rtol=tolerance, atol=tolerance * scale, equal_nan=True))


def main():
    kernels = load()
    generator = np.random.default_rng(1337)
    failed = False
    # rows, vocabulary, cap, spread of the logits: one word, part of a block, several blocks, no cap, saturated logits
    for rows, vocabulary, cap, spread in [(5, 37, 30.0, 20), (1, 1, 30.0, 1), (6, 1000, 0.0, 8), (4, 1025, 15.0, 40),
                                          (7, 512, 4.0, 1), (3, 700, 200.0, 150)]:
        for dtype, tolerance in [(torch.float32, 2e-5), (torch.bfloat16, 2e-2)]:
            for in_place in (False, True):
                x = torch.tensor(generator.normal(0, spread, (rows, vocabulary)), dtype=torch.float32).to(dtype)
                targets = generator.integers(0, vocabulary, rows).astype(np.int32)
                upstream = generator.normal(0, 1, rows).astype(np.float32)
                if rows >= 4:
                    targets[0], targets[1], upstream[2] = -1, vocabulary, 0
                wanted = expected(x.double().numpy(), targets, upstream.astype(np.float64), cap)
                actual = run(kernels, x, torch.from_numpy(targets), torch.from_numpy(upstream), cap, in_place)
                # loss and lse are f32 whatever the logits are; a gradient is upstream times a difference of two
                # numbers up to 1, so its rounding is measured against upstream.
                scales = [np.nanmax(np.abs(wanted[1])), np.nanmax(np.abs(wanted[1])), np.abs(upstream).max()]
                good = [close(*all_of) for all_of in zip(actual, wanted, (2e-5, 2e-5, tolerance), scales)]
                what = f"[{rows}, {vocabulary}] {dtype}, softcap {cap}{', in place' if in_place else ''}"
                failed |= not all(good)
                print(f"{'ok' if all(good) else 'not ok'} - loss, lse and gradient of {what}")
    sys.exit(failed)


if __name__ == "__main__":
    main()
