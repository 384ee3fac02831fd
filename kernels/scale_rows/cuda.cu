// scale_rows on w [rows, width] and s [rows]:  y[i] = s[i] w[i]
//   dw[i] += s[i] dy[i],  ds[i] += sum over columns of dy[i] w[i]   (dy, dw f32)
//
// A group of threads takes a row. Determinism: rows are independent; a row's sum has a fixed order.
#include <mulligan/cuda/rows.cuh>

MLG_KERNEL(scale_rows_fwd, MLG_ROW_CONSTANTS)
template <typename T, int N>
__global__ void __launch_bounds__(row_block)
    scale_rows_fwd(global<const T> w, global<const float> s, global<T> y, long long rows) {
  RowGroup group(rows, 1);
  if (group.row >= rows) return;
  const float scale = s[group.row];
  RowValues<N> values;
  for_slices(group, [&] {
    load_row<N>(group, w, group.row, values);
    scale_row<N>(group, values, scale);
    store_row<N>(group, y, group.row, values);
  });
}

// dw, ds may be null.
MLG_KERNEL(scale_rows_bwd, MLG_ROW_CONSTANTS)
template <typename T, int N>
__global__ void __launch_bounds__(row_block)
    scale_rows_bwd(global<const T> w, global<const float> s, global<const float> dy, global<float> dw,
                   global<float> ds, long long rows) {
  __shared__ shared_array<float, 32> scratch;
  RowGroup group(rows, 1);
  if (group.row >= rows) return;
  const float scale = s[group.row];
  const long long at = group.row * width;
  RowValues<N> values, upstream, before;
  float sum = 0;
  for_slices(group, [&] {
    load_columns<N>(group, dy, at, upstream);
    if (ds) {
      load_row<N>(group, w, group.row, values);
      sum += slice_sum<N>(group, [&](int i, int n) { return upstream.v[i][n] * values.v[i][n]; });
    }
    if (!dw) return;
    load_columns<N>(group, dw, at, before);
    for_columns<N>(group, [&](int i, int) {
      MLG_UNROLL
      for (int n = 0; n < N; ++n) before.v[i][n] += scale * upstream.v[i][n];
    });
    store_columns<N>(group, dw, at, before);
  });
  if (!ds) return;
  sum = group_sum(sum, scratch);
  if (group.thread == 0) ds[group.row] += sum;
}
