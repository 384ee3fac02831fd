// embedding on ids [T], table [V, width]:  x[t] = table[ids[t]];   dtable[ids[t]] += dx[t], in order of t
//
// Forward: a group of threads per token. An id outside of [0, V) gives a row of NaN.
// Backward: a group of threads per row of the table. It looks through all ids, keeps the tokens that are its
// own in a queue, and adds their rows eight at a time, so that loads overlap. No atomics; a wrong id makes
// row 0 NaN. Determinism: a row of the table is added up by one group, in order of t.
#include <mulligan/cuda/rows.cuh>

template <typename T, int N>
__global__ void embedding_fwd(global<const int> ids, global<const T> table, global<T> x, long long tokens,
                              int vocabulary) {
  const RowGroup group(tokens, 1);
  if (group.row >= tokens) return;
  const int id = ids[group.row];
  RowValues<N> values;
  if (id >= 0 && id < vocabulary) {
    load_row<N>(group, table, id, values);
  } else {
    for_columns<N>(group, [&](int i, int) {
      MLG_UNROLL
      for (int n = 0; n < N; ++n) values.v[i][n] = bits_to_float(0x7FC00000u);
    });
  }
  store_row<N>(group, x, group.row, values);
}

constexpr int kBatch = 8, kQueue = 48;  // a queue holds less than a batch, and then 32 more

template <typename T, int N>
__global__ void embedding_bwd(global<const int> ids, global<const T> dx, global<float> dtable, int tokens,
                              long long vocabulary) {
  __shared__ shared_array<int, 32 * kQueue> queues;
  const RowGroup group(vocabulary, 1);
  if (group.row >= vocabulary) return;
  const int lane = threadIdx.x % 32, queue = int(threadIdx.x) / 32 * kQueue;
  RowValues<N> sums;
  for_columns<N>(group,
                 [&](int i, int column) { load_floats<N>(dtable, group.row * width + column, sums.v[i]); });
  int waiting = 0;
  bool any = false, bad = false;
  const auto add_batch = [&](int first, int count) {
    MLG_UNROLL
    for (int i = 0; i < MLG_CAPACITY(held, kMostHeld<N>); ++i) {
      const int column = (i * row_threads + group.thread) * N;
      if (i >= held || column >= width) continue;
      float rows[kBatch][N];
      MLG_UNROLL
      for (int b = 0; b < kBatch; ++b) {
        if (b < count) load<N>(dx, (long long)(queues[queue + first + b]) * width + column, rows[b]);
      }
      MLG_UNROLL
      for (int b = 0; b < kBatch; ++b) {
        if (b >= count) continue;
        MLG_UNROLL
        for (int n = 0; n < N; ++n) sums.v[i][n] += rows[b][n];
      }
    }
  };
  for (int base = 0; base < tokens; base += 32) {
    const int token = base + lane;
    const int id = token < tokens ? ids[token] : int(group.row) + 1;
    const bool mine = token < tokens && id == group.row;
    bad = bad || (token < tokens && (id < 0 || id >= vocabulary));
    const unsigned found = __ballot_sync(kWholeWarp, mine);
    if (found == 0) continue;
    any = true;
    if (mine) queues[queue + waiting + __popc(found & ((1u << lane) - 1))] = token;
    waiting += __popc(found);
    __syncwarp();
    if (waiting < kBatch) continue;
    for (int first = 0; first < waiting; first += kBatch) add_batch(first, min(kBatch, waiting - first));
    waiting = 0;
    __syncwarp();
  }
  if (waiting > 0) add_batch(0, waiting);
  if (group.row == 0 && __any_sync(kWholeWarp, bad)) {
    any = true;
    for_columns<N>(group, [&](int i, int) {
      MLG_UNROLL
      for (int n = 0; n < N; ++n) sums.v[i][n] = bits_to_float(0x7FC00000u);
    });
  }
  if (!any) return;
  for_columns<N>(group,
                 [&](int i, int column) { store_floats<N>(dtable, group.row * width + column, sums.v[i]); });
}
