// Kernels that work on the rows of a [rows, width] tensor: a group of threads takes a row and keeps it in
// registers, `held` accesses of N elements per thread. The host side is sdk::RowPlan (cuda_kernel.hpp).
//
// A group is one warp (a block then has several) or the whole block.
#pragma once

#include <mulligan/cuda/device.cuh>

namespace {  // the constants are this file's own

MLG_CONST_INT(width)        // elements of a row
MLG_CONST_INT(row_threads)  // of a group: 32, or the whole block
MLG_CONST_INT(row_block)    // of a block
MLG_CONST_INT(held)         // accesses per thread

// Most accesses of N elements that a thread may hold, in registers.
template <int N>
constexpr int kMostHeld = N == 1 ? 32 : 8;

// The rows of the running thread's group: [row, end), one after another.
struct RowGroup {
  int thread;  // in the group
  long long row, end;

  // Each group takes `rows_per_group` rows.
  __device__ RowGroup(long long rows, long long rows_per_group) {
    thread = int(threadIdx.x) % row_threads;
    row = (blockIdx.x * (long long)(int(blockDim.x) / row_threads) + int(threadIdx.x) / row_threads) *
          rows_per_group;
    end = min(rows, row + rows_per_group);
  }
  // Which of all groups this is.
  __device__ long long index() const {
    return blockIdx.x * (long long)(int(blockDim.x) / row_threads) + int(threadIdx.x) / row_threads;
  }
};

// What a thread holds of a row: held x N floats.
template <int N>
struct RowValues {
  float v[MLG_CAPACITY(held, kMostHeld<N>)][N];
};

// body(i, column) for each access of the thread; the columns [column, column + N) lie inside the row.
template <int N, typename Body>
__device__ inline void for_columns(const RowGroup& group, Body body) {
  MLG_UNROLL
  for (int i = 0; i < held; ++i) {
    const int column = (i * row_threads + group.thread) * N;
    if (column < width) body(i, column);
  }
}

template <int N, typename P>
__device__ inline void load_row(const RowGroup& group, P p, long long row, RowValues<N>& out) {
  for_columns<N>(group, [&](int i, int column) { load<N>(p, row * width + column, out.v[i]); });
}

template <int N, typename P>
__device__ inline void store_row(const RowGroup& group, P p, long long row, const RowValues<N>& values,
                                 bool accumulate = false) {
  for_columns<N>(group,
                 [&](int i, int column) { store<N>(p, row * width + column, values.v[i], accumulate); });
}

// The sum of term(i, n) over the row, in every thread of the group. All threads of the group must call it.
template <int N, typename Term>
__device__ inline float row_sum(const RowGroup& group, shared_array<float, 32>& scratch, Term term) {
  float sum = 0;
  for_columns<N>(group, [&](int i, int) {
    MLG_UNROLL
    for (int n = 0; n < N; ++n) sum += term(i, n);
  });
  return block_sum(sum, scratch, row_threads / 32);
}

// 1 / sqrt(mean square + eps)
__device__ inline float reciprocal_rms(float sum_of_squares, float epsilon) {
  return rsqrtf(sum_of_squares / float(width) + epsilon);
}

}  // namespace
