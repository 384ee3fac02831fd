// Kernels that work on heads: rows of head_width elements, so short that a warp takes several. A group of
// head_lanes lanes (a power of two, at most 32) takes one, `head_held` accesses of N elements per lane. The
// host side is sdk::HeadPlan.
//
// Groups of one warp take part in its shuffles together: a group without work goes along,
// without touching memory.
#pragma once

#include <mulligan/cuda/device.cuh>

namespace {

MLG_CONST_INT(head_width)
MLG_CONST_INT(head_lanes)
MLG_CONST_INT(head_held)
#define MLG_HEAD_CONSTANTS head_width, head_lanes, head_held

template <int N>
constexpr int kMostHeadHeld = N == 1 ? 32 : 8;  // heads of up to 1024 elements

template <int N>
struct HeadValues {
  float v[MLG_CAPACITY(head_held, kMostHeadHeld<N>)][N];
};

// Which group of all groups the thread belongs to, and which of its lanes it is.
__device__ inline long long head_group() {
  return (blockIdx.x * (long long)(blockDim.x) + threadIdx.x) / head_lanes;
}
__device__ inline int head_lane() {
  return int(threadIdx.x) % head_lanes;
}

// body(i, column) for each access of the lane; the columns [column, column + N) lie inside the head.
template <int N, typename Body>
__device__ inline void for_head(Body body) {
  MLG_UNROLL
  for (int i = 0; i < head_held; ++i) {
    const int column = (i * head_lanes + head_lane()) * N;
    if (column < head_width) body(i, column);
  }
}

// The head that starts at element `at`; zeros unless `active`.
template <int N, typename P>
__device__ inline void load_head(P p, long long at, bool active, HeadValues<N>& out) {
  for_head<N>([&](int i, int column) {
    if (active) {
      load<N>(p, at + column, out.v[i]);
    } else {
      MLG_UNROLL
      for (int n = 0; n < N; ++n) out.v[i][n] = 0;
    }
  });
}

template <int N, typename P>
__device__ inline void store_head(P p, long long at, const HeadValues<N>& values, bool accumulate) {
  for_head<N>([&](int i, int column) { store<N>(p, at + column, values.v[i], accumulate); });
}

// The sum of term(i, n) over the head, in every lane of the group. All lanes of the warp must call it.
template <int N, typename Term>
__device__ inline float head_sum(Term term) {
  float sum = 0;
  for_head<N>([&](int i, int) {
    MLG_UNROLL
    for (int n = 0; n < N; ++n) sum += term(i, n);
  });
  for (int lanes = head_lanes / 2; lanes > 0; lanes >>= 1) sum += __shfl_xor_sync(kWholeWarp, sum, lanes);
  return sum;
}

__device__ inline float sigmoid(float x) {
  return 1.0f / (1.0f + __expf(-x));
}

}  // namespace
