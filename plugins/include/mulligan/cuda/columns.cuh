// Sums over rows: out[j] += partial[0][j] + partial[1][j] + ... in this order. Deterministic: each group of
// threads wrote its rows' sums to a row of `partial` of its own, and how rows fall to groups depends on the
// shape alone.
#pragma once

#include <mulligan/cuda/device.cuh>

namespace {

// partial [parts, columns], out [columns]. One thread per column.
__global__ void add_column_sums(global<const float> partial, global<float> out, int parts,
                                long long columns) {
  const long long column = blockIdx.x * (long long)(blockDim.x) + threadIdx.x;
  if (column >= columns) return;
  float sum = 0;
  for (int part = 0; part < parts; ++part) sum += partial[part * columns + column];
  out[column] += sum;
}

}  // namespace
