// embedding_fwd on ids [T], table [V, width]:  x[t] = table[ids[t]]
//
// A group of threads per token. An id outside of [0, V) gives a row of NaN.
// Determinism: rows are independent.
#include <mulligan/cuda/rows.cuh>

MLG_KERNEL(embedding_fwd, MLG_ROW_CONSTANTS)
template <typename T, int N>
__global__ void __launch_bounds__(row_block) embedding_fwd(global<const int> ids, global<const T> table,
                                                           global<T> x, long long tokens, int vocabulary) {
  RowGroup group(tokens, 1);
  if (group.row >= tokens) return;
  const int id = ids[group.row];
  for_slices(group, [&] {
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
  });
}
