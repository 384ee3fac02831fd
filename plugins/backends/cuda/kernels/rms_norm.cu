// rms_norm over the last axis of x [rows, width]:  r = 1 / sqrt(mean(x^2) + eps),  y = scale r x
//   dx (+)= scale r (dy - x r^2 mean(dy x))
//
// A group of threads per row, the row in registers: each tensor is read or written once.
// Determinism: rows are independent; a row's sum has a fixed order.
#include <mulligan/cuda/rows.cuh>

MLG_CONST_FLOAT(scale)
MLG_CONST_FLOAT(eps)
MLG_CONST_INT(accumulate_dx)

template <typename T, int N>
__global__ void __launch_bounds__(row_block) rms_norm_fwd(global<const T> x, global<T> y, long long rows) {
  __shared__ shared_array<float, 32> scratch;
  const RowGroup group(rows, 1);
  if (group.row >= rows) return;
  RowValues<N> values;
  load_row<N>(group, x, group.row, values);
  const float squares =
      row_sum<N>(group, scratch, [&](int i, int n) { return values.v[i][n] * values.v[i][n]; });
  const float factor = scale * reciprocal_rms(squares, eps);
  for_columns<N>(group, [&](int i, int) {
    for (int n = 0; n < N; ++n) values.v[i][n] *= factor;
  });
  store_row<N>(group, y, group.row, values);
}

template <typename T, int N>
__global__ void __launch_bounds__(row_block)
    rms_norm_bwd(global<const T> x, global<const T> dy, global<T> dx, long long rows) {
  __shared__ shared_array<float, 32> scratch;
  const RowGroup group(rows, 1);
  if (group.row >= rows) return;
  RowValues<N> a, b;
  load_row<N>(group, x, group.row, a);
  load_row<N>(group, dy, group.row, b);
  const float squares = row_sum<N>(group, scratch, [&](int i, int n) { return a.v[i][n] * a.v[i][n]; });
  const float product = row_sum<N>(group, scratch, [&](int i, int n) { return a.v[i][n] * b.v[i][n]; });
  const float r = reciprocal_rms(squares, eps), factor = scale * r;
  const float along = factor * r * r * product / float(width);
  for_columns<N>(group, [&](int i, int) {
    for (int n = 0; n < N; ++n) b.v[i][n] = factor * b.v[i][n] - along * a.v[i][n];
  });
  store_row<N>(group, dx, group.row, b, accumulate_dx);
}
