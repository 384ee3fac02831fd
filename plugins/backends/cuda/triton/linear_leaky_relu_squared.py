"""Triton kernels linear_leaky_relu_squared_fwd and _bwd: the MLP's activation in the epilogue of a product (docs/kernels.md).

    forward     u = x W^T, y = f(u), f(u) = (u > 0 ? u : slope u)^2      x [T, d], w [F, d], u and y [T, F]
    backward    du = (dy W) f'(u)                                        dy [T, d], w [d, F], u and du [T, F]
f32 accumulation in one order of k; f sees u as it is stored, rounded to its dtype, so that y and the gradient belong to the
same u. Rows beyond T are neither read nor written.

`programs` programs, as many as the card has multiprocessors, take the tiles of the result in turn, those of `group` rows of
tiles together, so that what they read stays in the second-level cache. Operands and results move through descriptors: by
the copy engine where the architecture has one (sm_90 and newer), whose memory for them is the launch's scratch.

Compiled ahead of time by compile_kernels.py (docs/triton.md), which calls kernels() below.
"""

import triton
import triton.language as tl


@triton.jit
def tile_of(index, rows, columns, group: tl.constexpr):
    """Row and column of tile number `index`: column after column of `group` rows."""
    in_group = group * columns
    first = (index // in_group) * group
    height = tl.minimum(rows - first, group)
    return first + (index % in_group) % height, (index % in_group) // height


@triton.jit
def halves(tile, bm: tl.constexpr, bn: tl.constexpr):
    """The left and the right half of the columns of [bm, bn]: results pass through half of the shared memory."""
    return tl.split(tl.permute(tl.reshape(tile, (bm, 2, bn // 2)), (0, 2, 1)))


@triton.jit
def store_activation(u_tiles, y_tiles, row, column, total, slope, dtype: tl.constexpr):
    stored = total.to(dtype)
    u_tiles.store([row, column], stored)
    value = stored.to(tl.float32)
    bent = tl.where(value > 0, value, slope * value)
    y_tiles.store([row, column], (bent * bent).to(dtype))


@triton.jit
def linear_leaky_relu_squared_fwd(x, w, u, y, slope, tokens, width: tl.constexpr, features: tl.constexpr,
                                  programs: tl.constexpr, bm: tl.constexpr, bn: tl.constexpr, bk: tl.constexpr,
                                  group: tl.constexpr):
    x_tiles = tl.make_tensor_descriptor(x, [tokens, width], [width, 1], [bm, bk])
    w_tiles = tl.make_tensor_descriptor(w, [features, width], [width, 1], [bn, bk])
    u_tiles = tl.make_tensor_descriptor(u, [tokens, features], [features, 1], [bm, bn // 2])
    y_tiles = tl.make_tensor_descriptor(y, [tokens, features], [features, 1], [bm, bn // 2])
    rows = tl.cdiv(tokens, bm)
    columns: tl.constexpr = (features + bn - 1) // bn
    for index in tl.range(tl.program_id(0), rows * columns, programs, flatten=True):
        row, column = tile_of(index, rows, columns, group)
        total = tl.zeros((bm, bn), dtype=tl.float32)
        for k in range(0, width, bk):
            total = tl.dot(x_tiles.load([row * bm, k]), w_tiles.load([column * bn, k]).T, total)
        left, right = halves(total, bm, bn)
        store_activation(u_tiles, y_tiles, row * bm, column * bn, left, slope, u.dtype.element_ty)
        store_activation(u_tiles, y_tiles, row * bm, column * bn + bn // 2, right, slope, u.dtype.element_ty)


@triton.jit
def store_gradient(u_tiles, du_tiles, row, column, total, slope, dtype: tl.constexpr):
    value = u_tiles.load([row, column]).to(tl.float32)
    slopes = value * tl.where(value > 0, 2.0, 2.0 * slope * slope)
    du_tiles.store([row, column], (total * slopes).to(dtype))


@triton.jit
def linear_leaky_relu_squared_bwd(dy, w, u, du, slope, tokens, width: tl.constexpr, features: tl.constexpr,
                                  programs: tl.constexpr, bm: tl.constexpr, bn: tl.constexpr, bk: tl.constexpr,
                                  group: tl.constexpr):
    dy_tiles = tl.make_tensor_descriptor(dy, [tokens, width], [width, 1], [bm, bk])
    w_tiles = tl.make_tensor_descriptor(w, [width, features], [features, 1], [bk, bn])
    u_tiles = tl.make_tensor_descriptor(u, [tokens, features], [features, 1], [bm, bn // 2])
    du_tiles = tl.make_tensor_descriptor(du, [tokens, features], [features, 1], [bm, bn // 2])
    rows = tl.cdiv(tokens, bm)
    columns: tl.constexpr = (features + bn - 1) // bn
    for index in tl.range(tl.program_id(0), rows * columns, programs, flatten=True):
        row, column = tile_of(index, rows, columns, group)
        total = tl.zeros((bm, bn), dtype=tl.float32)
        for k in range(0, width, bk):
            total = tl.dot(dy_tiles.load([row * bm, k]), w_tiles.load([k, column * bn]), total)
        left, right = halves(total, bm, bn)
        store_gradient(u_tiles, du_tiles, row * bm, column * bn, left, slope, du.dtype.element_ty)
        store_gradient(u_tiles, du_tiles, row * bm, column * bn + bn // 2, right, slope, du.dtype.element_ty)


def kernels(dtype="bf16", width="512", features="2048", programs="132", warps="8", stages="3", tile="128,256,64",
            group="8"):
    """What compile_kernels.py compiles: for one width and number of features (the MLP's), any number of tokens. `programs`:
    132 multiprocessors of an H100 SXM or H200."""
    rows, columns, inner = (int(extent) for extent in tile.split(","))
    constants = {
        "width": int(width), "features": int(features), "programs": int(programs),
        "bm": rows, "bn": columns, "bk": inner, "group": int(group),
    }
    common = {
        "constants": constants,
        "grid": [programs],
        "options": {"num_warps": int(warps), "num_stages": int(stages), "ptx_version": 86},
    }
    pointer = f"*{dtype}"
    return [
        {
            **common,
            "function": linear_leaky_relu_squared_fwd,
            "types": {"x": pointer, "w": pointer, "u": pointer, "y": pointer, "slope": "fp32"},
            "extents": {"tokens": ("i32", "x.shape[0]", 1)},
            "when": {"x.shape[1]": int(width), "w.shape[0]": int(features)},
        },
        {
            **common,
            "function": linear_leaky_relu_squared_bwd,
            "types": {"dy": pointer, "w": pointer, "u": pointer, "du": pointer, "slope": "fp32"},
            "extents": {"tokens": ("i32", "dy.shape[0]", 1)},
            "when": {"dy.shape[1]": int(width), "u.shape[1]": int(features)},
        },
    ]
