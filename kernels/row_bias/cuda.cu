// row_bias on x [rows, width] and bias [width]:  y = x + bias, or bias alone without x
//   dbias += sum over rows of dy
//
// A group of threads takes several rows and keeps the values of its columns in registers. Determinism: rows are independent;
// dbias uses partial sums of fixed pieces of rows (columns.cuh).
#include <mulligan/cuda/columns.cuh>
#include <mulligan/cuda/rows.cuh>

MLG_KERNEL(row_bias_fwd, MLG_ROW_CONSTANTS)
template <typename T, int N>
__global__ void __launch_bounds__(row_block) row_bias_fwd(global<const T> x, global<const float> bias,
                                                          global<T> y, long long rows, int rows_per_group) {
  RowGroup group(rows, rows_per_group);
  if (group.row >= rows) return;
  for_slices(group, [&] {
    RowValues<N> added, values;
    load_columns<N>(group, bias, 0, added);
    for (long long row = group.row; row < group.end; ++row) {
      if (x) {
        load_row<N>(group, x, row, values);
      } else {
        clear<N>(group, values);
      }
      for_columns<N>(group, [&](int i, int) {
        MLG_UNROLL
        for (int n = 0; n < N; ++n) values.v[i][n] += added.v[i][n];
      });
      store_row<N>(group, y, row, values);
    }
  });
}

// partial: [blocks, width].
MLG_KERNEL(row_bias_bwd, MLG_ROW_CONSTANTS)
template <typename T, int N>
__global__ void __launch_bounds__(row_block)
    row_bias_bwd(global<const T> dy, global<float> partial, long long rows, int rows_per_group) {
  __shared__ GroupScratch group_scratch;
  RowGroup group(rows, rows_per_group);
  const long long at = blockIdx.x * (long long)(width);  // in partial
  for_slices(group, [&] {
    RowValues<N> sums;
    clear<N>(group, sums);
    for (long long row = group.row; row < group.end; ++row) {
      RowPacks<T, N> g;
      load_packs(group, dy, row, g);
      for_columns<N>(group, [&](int i, int) {
        MLG_UNROLL
        for (int n = 0; n < N; ++n) sums.v[i][n] += g(i, n);
      });
    }
    end_sums(group, partial, at, sums, group_scratch);
  });
}
