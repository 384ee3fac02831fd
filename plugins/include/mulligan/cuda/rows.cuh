// Kernels that work on the rows of a [rows, width] tensor: a group of threads takes a row and keeps it in
// registers, `held` accesses of N elements per thread. The host side is sdk::RowPlan (row_plan.hpp).
//
// A group is one warp (a block then has several) or the whole block. A row that is too wide for its registers
// is taken in several slices, one after another; what needs the row again then reads it again.
#pragma once

#include <mulligan/cuda/device.cuh>

namespace {  // the constants are this file's own

MLG_CONST_INT(width)        // elements of a row
MLG_CONST_INT(row_threads)  // of a group: 32, or the whole block
MLG_CONST_INT(row_block)    // of a block
MLG_CONST_INT(held)         // accesses per thread and slice, at most kMostHeld
MLG_CONST_INT(slices)       // of a row
#define MLG_ROW_CONSTANTS width, row_threads, row_block, held, slices

constexpr int kMostHeld = 4;

// The rows of the running thread's group: [row, end), one after another.
struct RowGroup {
  int thread;     // in the group
  int slice = 0;  // the running one
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

// What a thread holds of a slice: held x N floats.
template <int N>
struct RowValues {
  float v[MLG_CAPACITY(held, kMostHeld)][N];
};

// body() for each slice of a row.
template <typename Body>
__device__ inline void for_slices(RowGroup& group, Body body) {
  for (group.slice = 0; group.slice < slices; ++group.slice) body();
  group.slice = 0;
}

// body(i, column) for each access of the thread to the slice; the columns [column, column + N) lie
// inside the row.
template <int N, typename Body>
__device__ inline void for_columns(const RowGroup& group, Body body) {
  MLG_UNROLL
  for (int i = 0; i < held; ++i) {
    const int column = ((group.slice * held + i) * row_threads + group.thread) * N;
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

// The same for floats of the columns, at p[at + column].
template <int N, typename P>
__device__ inline void load_columns(const RowGroup& group, P p, long long at, RowValues<N>& out) {
  for_columns<N>(group, [&](int i, int column) { load_floats<N>(p, at + column, out.v[i]); });
}

template <int N, typename P>
__device__ inline void store_columns(const RowGroup& group, P p, long long at, const RowValues<N>& values) {
  for_columns<N>(group, [&](int i, int column) { store_floats<N>(p, at + column, values.v[i]); });
}

template <int N>
__device__ inline void clear(const RowGroup& group, RowValues<N>& values) {
  for_columns<N>(group, [&](int i, int) {
    MLG_UNROLL
    for (int n = 0; n < N; ++n) values.v[i][n] = 0;
  });
}

// The sum of term(i, n) over what the thread holds of the slice.
template <int N, typename Term>
__device__ inline float slice_sum(const RowGroup& group, Term term) {
  float sum = 0;
  for_columns<N>(group, [&](int i, int) {
    MLG_UNROLL
    for (int n = 0; n < N; ++n) sum += term(i, n);
  });
  return sum;
}

// The sum over the group's threads, in each of them; all of them must call it.
__device__ inline float group_sum(float of_thread, shared_array<float, 32>& scratch) {
  return block_sum(of_thread, scratch, row_threads / 32);
}

// 1 / sqrt(mean square + eps)
__device__ inline float reciprocal_rms(float sum_of_squares, float epsilon) {
  return rsqrtf(sum_of_squares / float(width) + epsilon);
}

// The gradient of n = scale y / rms(y) at dn: dy = factor dn - along y.
struct NormGradient {
  float factor = 0, along = 0;

  __device__ NormGradient() {}
  // Sums over the row: of y^2, and of y dn.
  __device__ NormGradient(float squares, float product, float scale, float epsilon) {
    const float r = reciprocal_rms(squares, epsilon);
    factor = scale * r;
    along = factor * r * r * product / float(width);
  }
};

template <int N>
__device__ inline void scale_row(const RowGroup& group, RowValues<N>& values, float factor) {
  for_columns<N>(group, [&](int i, int) {
    MLG_UNROLL
    for (int n = 0; n < N; ++n) values.v[i][n] *= factor;
  });
}

}  // namespace
