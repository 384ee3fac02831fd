// What a library's attention (attention.h) needs around it:
//   rows    from cu_seqlens [N + 1]: row i starts at token c(i) = cu[min(i, N)] and has c(i + 1) - c(i) of
//           them; starts in elements of tensors with `query`, `kv` and `stats` elements per token
//   stats   [T / R, H, R] of the library (rows of R tokens, not packed) <-> lse [T, H]
//   add     y += x
//
// Determinism: elements are independent.
#include <mulligan/cuda/elements.cuh>

MLG_KERNEL(attention_rows)
__global__ void attention_rows(global<const int> cu_seqlens, int segments, int rows, int query, int kv,
                               int stats, global<int> query_starts, global<int> kv_starts,
                               global<int> stats_starts, global<int> lengths) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row > rows) return;
  const int begin = cu_seqlens[min(row, segments)];
  query_starts[row] = begin * query;
  kv_starts[row] = begin * kv;
  stats_starts[row] = begin * stats;
  if (row < rows) lengths[row] = cu_seqlens[min(row + 1, segments)] - begin;
}

// Where a library that takes rows of `row_length` tokens keeps the value of lse[i], i = token heads + head.
__device__ inline long long stats_index(long long i, int heads, int row_length) {
  const int token = int(i / heads), head = int(i % heads);
  return ((long long)(token / row_length) * heads + head) * row_length + token % row_length;
}

MLG_KERNEL(attention_stats_to_lse)
__global__ void attention_stats_to_lse(global<const float> stats, global<float> lse, int tokens, int heads,
                                       int row_length) {
  const long long i = blockIdx.x * (long long)(blockDim.x) + threadIdx.x;
  if (i < (long long)(tokens)*heads) lse[i] = stats[stats_index(i, heads, row_length)];
}

MLG_KERNEL(attention_lse_to_stats)
__global__ void attention_lse_to_stats(global<const float> lse, global<float> stats, int tokens, int heads,
                                       int row_length) {
  const long long i = blockIdx.x * (long long)(blockDim.x) + threadIdx.x;
  if (i < (long long)(tokens)*heads) stats[stats_index(i, heads, row_length)] = lse[i];
}

// count: a multiple of 8.
MLG_KERNEL(attention_add)
__global__ void attention_add(global<const bf16> x, global<bf16> y, long long count) {
  const long long i = first_element<8>();
  if (i >= count) return;
  float values[8];
  load<8>(x, i, values);
  store<8>(y, i, values, true);
}
