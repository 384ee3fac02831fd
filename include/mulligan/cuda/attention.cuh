// What the attention kernels share: segments, tiles of rows in shared memory. Part of the own attention of the
// cuda backend, which computes without tensor cores and stands in where cuDNN has no plan.
//
// A row is one token of one head, `head_width` elements. A block owns kOwned rows per warp and streams the
// rows of the other side in tiles of 32, one per lane.
#pragma once

#include <mulligan/cuda/device.cuh>

namespace {

MLG_CONST_INT(head_width)
MLG_CONST_INT(query_heads)
MLG_CONST_INT(kv_heads)
MLG_CONST_INT(channels)  // of a row per lane: head_width / 32, rounded up
#define MLG_ATTENTION_CONSTANTS head_width, query_heads, kv_heads, channels

constexpr int kMostWidth = 128, kTile = 32, kOwned = 2;
constexpr int kStride = kMostWidth + 1;  // odd: lanes that read one column of 32 rows hit 32 banks

using Tile = shared_array<float, kTile * kStride>;
using Weights = shared_array<float, kTile * 8>;  // of a tile's rows, for each of a block's warps

// The rows that a block of kWarps warps owns, kOwned of them to a warp, and the running thread among them.
template <int kWarps>
struct OwnedRows {
  static constexpr int kRows = kWarps * kOwned;
  int lane, warp;
  int first, last;  // tokens: of the block's first row, of its last one

  __device__ explicit OwnedRows(int tokens) {
    lane = threadIdx.x % 32;
    warp = threadIdx.x / 32;
    first = int(blockIdx.x) * kRows;
    last = min(first + kRows, tokens) - 1;
  }
  // Row i of the warp: which one of the block, which token.
  __device__ int row(int i) const { return warp * kOwned + i; }
  __device__ int token(int i) const { return first + row(i); }
};

// Whether cu_seqlens rises from 0 to `tokens`. By the whole block.
__device__ inline bool segments_are_valid(global<const int> cu_seqlens, int segments, int tokens,
                                          shared_array<float, 32>& scratch) {
  float bad = 0;
  for (int i = threadIdx.x; i < segments; i += blockDim.x) {
    if (cu_seqlens[i + 1] < cu_seqlens[i]) bad = 1;
  }
  if (cu_seqlens[0] != 0 || cu_seqlens[segments] != tokens) bad = 1;
  return block_max(bad, scratch, int(blockDim.x) / 32) == 0.0f;
}

// The first token of the segment of `token`, or -1 when cu_seqlens [segments + 1] gives it none.
__device__ inline int segment_begin(global<const int> cu_seqlens, int segments, int token) {
  int low = 0, high = segments;  // the last i with cu[i] <= token
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (cu_seqlens[middle] <= token) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  const int begin = cu_seqlens[low];
  return low < segments && begin >= 0 && begin <= token ? begin : -1;
}

// The end of the segment of `token`, at most `tokens`.
__device__ inline int segment_end(global<const int> cu_seqlens, int segments, int token, int tokens) {
  int low = 0, high = segments;  // the first i with cu[i] > token
  while (low < high) {
    const int middle = (low + high) / 2;
    if (cu_seqlens[middle] > token) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return min(int(cu_seqlens[low]), tokens);
}

// After the last key that the query at `token` sees: itself, or the last of its segment.
__device__ inline int keys_end(global<const int> cu_seqlens, int segments, int token, int tokens,
                               bool bidirectional) {
  return bidirectional ? segment_end(cu_seqlens, segments, token, tokens) : token + 1;
}

// Where a tile of keys that begins at `tile` ends when tiles begin anew with each segment: a query's keys are
// then cut alike wherever its segment lies. (No cu_seqlens that is valid ends a segment before its tokens.)
__device__ inline int segment_tile_end(global<const int> cu_seqlens, int segments, int tile, int tokens) {
  const int end = segment_end(cu_seqlens, segments, tile, tokens);
  return end > tile ? min(tile + kTile, end) : tile + kTile;
}

// tile[r] = row first + r of p [tokens, heads, head_width], for `rows` rows; zeros from `tokens` on. By
// the whole block.
template <int N, typename P, int extent>
__device__ inline void load_rows(P p, int head, int heads, int first, int rows, int tokens,
                                 shared_array<float, extent>& tile) {
  for (int i = threadIdx.x; i < rows * head_width / N; i += blockDim.x) {
    const int row = i * N / head_width, column = i * N % head_width, token = first + row;
    float values[N] = {};
    if (token >= 0 && token < tokens)
      load<N>(p, ((long long)(token)*heads + head) * head_width + column, values);
    MLG_UNROLL
    for (int n = 0; n < N; ++n) tile[row * kStride + column + n] = values[n];
  }
}

// Two tiles of the rows of p and q from `first` on. A barrier before them lets go of what the tiles held.
template <int N, typename P>
__device__ inline void load_tiles(P p, P q, int head, int heads, int first, int tokens, Tile& of_p,
                                  Tile& of_q) {
  __syncthreads();
  load_rows<N>(p, head, heads, first, kTile, tokens, of_p);
  load_rows<N>(q, head, heads, first, kTile, tokens, of_q);
  __syncthreads();
}

// The dot product of two rows.
template <int a_extent, int b_extent>
__device__ inline float dot(shared_array<float, a_extent>& a, int a_row, shared_array<float, b_extent>& b,
                            int b_row) {
  float sum = 0;
  for (int j = 0; j < head_width; ++j) sum += a[a_row * kStride + j] * b[b_row * kStride + j];
  return sum;
}

// What a lane accumulates of a row: channels lane, lane + 32, ...
struct Channels {
  float v[MLG_CAPACITY(channels, kMostWidth / 32)];

  __device__ void clear() {
    MLG_UNROLL
    for (int c = 0; c < channels; ++c) v[c] = 0;
  }
  __device__ void scale(float factor) {
    MLG_UNROLL
    for (int c = 0; c < channels; ++c) v[c] *= factor;
  }
  // += sum over the rows r of a tile of lane r's weight times row r. By a whole warp.
  __device__ void add(float own_weight, Weights& weights, Tile& tile) {
    const int lane = threadIdx.x % 32, first = threadIdx.x / 32 * kTile;
    __syncwarp();
    weights[first + lane] = own_weight;
    __syncwarp();
    for (int r = 0; r < kTile; ++r) {
      const float weight = weights[first + r];
      MLG_UNROLL
      for (int c = 0; c < channels; ++c) {
        if (c * 32 + lane < head_width) v[c] += weight * tile[r * kStride + c * 32 + lane];
      }
    }
  }
  template <typename T>
  __device__ void store(global<T> p, int token, int head, int heads, bool accumulate) const {
    const int lane = threadIdx.x % 32;
    MLG_UNROLL
    for (int c = 0; c < channels; ++c) {
      if (c * 32 + lane >= head_width) continue;
      const float value[1] = {v[c]};
      ::store<1>(p, ((long long)(token)*heads + head) * head_width + c * 32 + lane, value, accumulate);
    }
  }
};

}  // namespace
