// Sums over rows: out[j] += sum over parts of partial[part][j]. Deterministic: each group of threads wrote its rows' sums to
// its own row of `partial`, and the shape alone decides which rows a group takes.
#pragma once

#include <mulligan/cuda/device.cuh>

namespace {

constexpr int kMostColumnWarps = 32;

using ColumnSumScratch = shared_array<float, 32 * kMostColumnWarps>;

// Block number `block` of those that add partial [parts, columns] to out [columns]. A block takes 32 columns,
// a lane of each warp one of them, so that a warp's load is one whole line. Two stages: warp w adds the parts
// w, w + warps, ... in this order; then the first warp adds what the warps found, in theirs.
__device__ inline void add_columns(global<const float> partial, global<float> out, int parts,
                                   long long columns, long long block, ColumnSumScratch& sums) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = int(blockDim.x) / 32;
  const long long column = block * 32 + lane;
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

MLG_KERNEL(add_column_sums)
[[maybe_unused]] __global__ void __launch_bounds__(32 * kMostColumnWarps)
    add_column_sums(global<const float> partial, global<float> out, int parts, long long columns) {
  __shared__ ColumnSumScratch sums;
  add_columns(partial, out, parts, columns, blockIdx.x, sums);
}

// Four such sums, one after another in the grid; those without columns have no blocks.
MLG_KERNEL(add_four_column_sums)
[[maybe_unused]] __global__ void __launch_bounds__(32 * kMostColumnWarps)
    add_four_column_sums(global<const float> partial0, global<float> out0, int parts0, long long columns0,
                         global<const float> partial1, global<float> out1, int parts1, long long columns1,
                         global<const float> partial2, global<float> out2, int parts2, long long columns2,
                         global<const float> partial3, global<float> out3, int parts3, long long columns3) {
  __shared__ ColumnSumScratch sums;
  long long block = blockIdx.x;
  // Goes over to the next sum where the block is none of this one's.
  const auto next = [&](global<const float> partial, global<float> out, int parts, long long columns) {
    const long long blocks = (columns0 + 31) / 32;
    if (block < blocks) return;
    block -= blocks;
    partial0 = partial, out0 = out, parts0 = parts, columns0 = columns;
  };
  next(partial1, out1, parts1, columns1);
  next(partial2, out2, parts2, columns2);
  next(partial3, out3, parts3, columns3);
  add_columns(partial0, out0, parts0, columns0, block, sums);
}

}  // namespace
