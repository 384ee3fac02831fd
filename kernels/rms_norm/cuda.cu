// rms_norm over the last axis of x [rows, width]:  r = 1 / sqrt(mean(x^2) + eps),  y = scale r x
//   dx (+)= scale r (dy - x r^2 mean(dy x))
//
// A group of threads per row, the row in registers: each tensor is read or written once.
// Determinism: rows are independent; a row's sum has a fixed order.
#include <mulligan/cuda/rows.cuh>

MLG_CONST_FLOAT(scale)
MLG_CONST_FLOAT(eps)
MLG_CONST_INT(accumulate_dx)

MLG_KERNEL(rms_norm_fwd, scale, eps, MLG_ROW_CONSTANTS)
template <typename T, int N>
__global__ void __launch_bounds__(row_block) rms_norm_fwd(global<const T> x, global<T> y, long long rows) {
  __shared__ shared_array<float, 32> scratch;
  RowGroup group(rows, 1);
  if (group.row >= rows) return;
  RowValues<N> values;
  float squares = 0;
  for_slices(group, [&] {
    load_row<N>(group, x, group.row, values);
    squares += slice_sum<N>(group, [&](int i, int n) { return values.v[i][n] * values.v[i][n]; });
  });
  const float factor = scale * reciprocal_rms(group_sum(squares, scratch), eps);
  for_slices(group, [&] {
    if (slices > 1) load_row<N>(group, x, group.row, values);
    scale_row<N>(group, values, factor);
    store_row<N>(group, y, group.row, values);
  });
}

MLG_KERNEL(rms_norm_bwd, scale, eps, accumulate_dx, MLG_ROW_CONSTANTS)
template <typename T, int N>
__global__ void __launch_bounds__(row_block)
    rms_norm_bwd(global<const T> x, global<const T> dy, global<T> dx, long long rows) {
  __shared__ shared_array<float, 32> scratch;
  RowGroup group(rows, 1);
  if (group.row >= rows) return;
  RowValues<N> a, b;
  const auto fill = [&] {
    load_row<N>(group, x, group.row, a);
    load_row<N>(group, dy, group.row, b);
  };
  float squares = 0, product = 0;
  for_slices(group, [&] {
    fill();
    squares += slice_sum<N>(group, [&](int i, int n) { return a.v[i][n] * a.v[i][n]; });
    product += slice_sum<N>(group, [&](int i, int n) { return a.v[i][n] * b.v[i][n]; });
  });
  const NormGradient norm(group_sum(squares, scratch), group_sum(product, scratch), scale, eps);
  for_slices(group, [&] {
    if (slices > 1) fill();
    for_columns<N>(group, [&](int i, int) {
      MLG_UNROLL
      for (int n = 0; n < N; ++n) b.v[i][n] = norm.factor * b.v[i][n] - norm.along * a.v[i][n];
    });
    store_row<N>(group, dx, group.row, b, accumulate_dx);
  });
}
