"""Triton kernels softcap_ce_fwd and softcap_ce_bwd: drop-in replacements of those of the loss plugin.

Per row of logits x [rows, vocabulary], with softcap c (formula, shapes and edge cases: ../softcap_ce_kernels.h):
    z = c tanh(x / c) + c, or z = x where c = 0;   lse = logsumexp(z);   loss = lse - z[target]
    dx = upstream (exp(z - lse) - onehot(target)) dz/dx
One program per row; f32 arithmetic; one row is always summed in the same order. A negative target gives loss, lse and
gradient 0, a target from `vocabulary` on NaN. Inside, z goes without its constant + c, whose rounding error is larger.

Compiled ahead of time by plugins/backends/cuda/triton/compile_kernels.py (docs/triton.md), which calls kernels() below.
"""

import triton
import triton.language as tl

# Finite: -inf - -inf would be NaN.
LOWEST = tl.constexpr(-3.0e38)


@triton.jit
def apply_cap(x, softcap):
    """z without its constant, and dz/dx. Both from e^(-2|u|), which keeps the digits of a slope near 0."""
    capped = softcap > 0
    scale = tl.where(capped, softcap, 1.0)
    decay = tl.exp(-2.0 * tl.abs(x) / scale)
    magnitude = scale * (1.0 - decay) / (1.0 + decay)
    value = tl.where(x < 0, -magnitude, magnitude)
    slope = 4.0 * decay / ((1.0 + decay) * (1.0 + decay))
    return tl.where(capped, value, x), tl.where(capped, slope, 1.0)


@triton.jit
def softcap_ce_fwd(logits, targets, token_loss, lse, softcap, vocabulary, block: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    logits += row * vocabulary
    target = tl.load(targets + row)
    highest = tl.full((), LOWEST, tl.float32)
    total = tl.full((), 0.0, tl.float32)
    for start in range(0, vocabulary, block):
        columns = start + tl.arange(0, block)
        inside = columns < vocabulary
        z, _ = apply_cap(tl.load(logits + columns, mask=inside, other=0.0).to(tl.float32), softcap)
        z = tl.where(inside, z, float("-inf"))
        risen = tl.maximum(highest, tl.max(z, axis=0))
        total = total * tl.exp(highest - risen) + tl.sum(tl.exp(z - risen), axis=0)
        highest = risen
    known = (target >= 0) & (target < vocabulary)
    at_target, _ = apply_cap(tl.load(logits + target, mask=known, other=0.0).to(tl.float32), softcap)
    # The difference first: both may be large.
    loss = tl.where(known, (highest - at_target) + tl.log(total), float("nan"))
    tl.store(token_loss + row, tl.where(target < 0, 0.0, loss))
    tl.store(lse + row, tl.where(target < 0, 0.0, highest + tl.log(total) + softcap))


@triton.jit
def softcap_ce_bwd(logits, targets, lse, upstream, dlogits, softcap, vocabulary, block: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * block + tl.arange(0, block)
    inside = columns < vocabulary
    target = tl.load(targets + row)
    weight = tl.load(upstream + row)
    logsum = tl.load(lse + row) - softcap
    x = tl.load(logits + row * vocabulary + columns, mask=inside, other=0.0).to(tl.float32)
    z, slope = apply_cap(x, softcap)
    gradient = weight * (tl.exp(z - logsum) - tl.where(columns == target, 1.0, 0.0)) * slope
    gradient = tl.where(target < vocabulary, gradient, float("nan"))
    # Selected, not multiplied: a logit that is not finite has no gradient either where there is no loss.
    gradient = tl.where((target < 0) | ((weight == 0.0) & (target < vocabulary)), 0.0, gradient)
    # dlogits may be the memory of logits: every element was read above by the program that writes it.
    tl.store(dlogits + row * vocabulary + columns, gradient.to(dlogits.dtype.element_ty), mask=inside)


def kernels(dtype="bf16", vocabulary="0", block="2048", warps="8"):
    """What compile_kernels.py compiles. `dtype`: bf16 or fp32, of the logits. `vocabulary`: the run's, for the hint that
    it is a multiple of 16, which makes accesses wide; 0: unknown, no hint, any vocabulary."""
    multiple = 16 if int(vocabulary) > 0 and int(vocabulary) % 16 == 0 else 1
    common = {
        "extents": {"vocabulary": ("i32", "logits.shape[1]", multiple)},
        "constants": {"block": int(block)},
        "options": {"num_warps": int(warps)},
    }
    logits = {"logits": f"*{dtype}", "targets": "*i32"}
    return [
        {
            **common,
            "function": softcap_ce_fwd,
            "types": {**logits, "token_loss": "*fp32", "lse": "*fp32", "softcap": "fp32"},
            "grid": ["logits.shape[0]"],
        },
        {
            **common,
            "function": softcap_ce_bwd,
            "types": {**logits, "lse": "*fp32", "upstream": "*fp32", "dlogits": f"*{dtype}", "softcap": "fp32"},
            "grid": ["logits.shape[0]", f"logits.shape[1] / {block}"],
        },
    ]
