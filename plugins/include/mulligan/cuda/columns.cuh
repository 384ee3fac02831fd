// Sums over rows: out[j] += sum over parts of partial[part][j]. Deterministic: each group of threads wrote
// its rows' sums to a row of `partial` of its own, and how rows fall to groups depends on the shape alone.
#pragma once

#include <mulligan/cuda/device.cuh>

namespace {

constexpr int kMostColumnWarps = 32;

// partial [parts, columns], out [columns]. A block takes 32 columns, a lane of each warp one of them, so that
// a warp's load is one whole line. Two stages: warp w adds the parts w, w + warps, ... in this order; then
// the first warp adds what the warps found, in theirs.
MLG_KERNEL(add_column_sums)
__global__ void __launch_bounds__(32 * kMostColumnWarps)
    add_column_sums(global<const float> partial, global<float> out, int parts, long long columns) {
  __shared__ shared_array<float, 32 * kMostColumnWarps> sums;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = int(blockDim.x) / 32;
  const long long column = blockIdx.x * 32LL + lane;
  float sum = 0;
  if (column < columns) {
    MLG_UNROLL
    for (int part = warp; part < parts; part += warps) sum += partial[part * columns + column];
  }
  sums[warp * 32 + lane] = sum;
  __syncthreads();
  if (warp != 0 || column >= columns) return;
  for (int other = 1; other < warps; ++other) sum += sums[other * 32 + lane];
  out[column] += sum;
}

}  // namespace
