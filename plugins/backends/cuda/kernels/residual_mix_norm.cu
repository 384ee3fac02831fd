// residual_mix_norm on x, x0 [rows, width] and mix [2, width]:  y = mix0 x + mix1 x0,  n = scale norm(y)
//   g = dy + norm'(dn):  with r = 1 / sqrt(mean(y^2) + eps):  g = dy + scale r (dn - y r^2 mean(dn y))
//   dx (+)= mix0 g,  dx0 (+)= mix1 g,  dmix += (sum over rows of g x, of g x0)
//
// n comes from y before y is rounded to the compute dtype, so it is the same whether y is kept or not.
// Determinism: rows are independent; dmix goes through partial sums of fixed pieces of rows (columns.cuh).
#include <mulligan/cuda/columns.cuh>
#include <mulligan/cuda/rows.cuh>

MLG_CONST_FLOAT(scale)
MLG_CONST_FLOAT(eps)
MLG_CONST_INT(accumulate_dx)
MLG_CONST_INT(accumulate_dx0)

// y may be null.
template <typename T, int N>
__global__ void __launch_bounds__(row_block)
    residual_mix_norm_fwd(global<const T> x, global<const T> x0, global<const float> mix, global<T> y,
                          global<T> normed, long long rows) {
  __shared__ shared_array<float, 32> scratch;
  const RowGroup group(rows, 1);
  if (group.row >= rows) return;
  RowValues<N> values;
  for_columns<N>(group, [&](int i, int column) {
    float a[N], b[N], mix0[N], mix1[N];
    load<N>(x, group.row * width + column, a);
    load<N>(x0, group.row * width + column, b);
    load_floats<N>(mix, column, mix0);
    load_floats<N>(mix, width + column, mix1);
    MLG_UNROLL
    for (int n = 0; n < N; ++n) values.v[i][n] = mix0[n] * a[n] + mix1[n] * b[n];
  });
  if (y) store_row<N>(group, y, group.row, values);
  const float squares =
      row_sum<N>(group, scratch, [&](int i, int n) { return values.v[i][n] * values.v[i][n]; });
  const float factor = scale * reciprocal_rms(squares, eps);
  for_columns<N>(group, [&](int i, int) {
    MLG_UNROLL
    for (int n = 0; n < N; ++n) values.v[i][n] *= factor;
  });
  store_row<N>(group, normed, group.row, values);
}

// dy, dn, dx, dx0 may be null. partial: [groups, 2, width], or null without dmix.
template <typename T, int N>
__global__ void __launch_bounds__(row_block)
    residual_mix_norm_bwd(global<const T> x, global<const T> x0, global<const float> mix, global<const T> dy,
                          global<const T> dn, global<T> dx, global<T> dx0, global<float> partial,
                          long long rows, int rows_per_group) {
  __shared__ shared_array<float, 32> scratch;
  const RowGroup group(rows, rows_per_group);
  if (group.row >= rows) return;
  RowValues<N> mix0, mix1, sum0, sum1;
  for_columns<N>(group, [&](int i, int column) {
    load_floats<N>(mix, column, mix0.v[i]);
    load_floats<N>(mix, width + column, mix1.v[i]);
    MLG_UNROLL
    for (int n = 0; n < N; ++n) sum0.v[i][n] = sum1.v[i][n] = 0;
  });
  for (long long row = group.row; row < group.end; ++row) {
    RowValues<N> a, b, g;
    load_row<N>(group, x, row, a);
    load_row<N>(group, x0, row, b);
    const auto mixed = [&](int i, int n) { return mix0.v[i][n] * a.v[i][n] + mix1.v[i][n] * b.v[i][n]; };
    float factor = 0, along = 0;  // norm'(dn) = factor dn - along y
    if (dn) {
      load_row<N>(group, dn, row, g);
      const float squares =
          row_sum<N>(group, scratch, [&](int i, int n) { return mixed(i, n) * mixed(i, n); });
      const float product = row_sum<N>(group, scratch, [&](int i, int n) { return mixed(i, n) * g.v[i][n]; });
      const float r = reciprocal_rms(squares, eps);
      factor = scale * r;
      along = factor * r * r * product / float(width);
    }
    for_columns<N>(group, [&](int i, int column) {
      float upstream[N] = {}, da[N], db[N];
      if (dy) load<N>(dy, row * width + column, upstream);
      MLG_UNROLL
      for (int n = 0; n < N; ++n) {
        if (dn) upstream[n] += factor * g.v[i][n] - along * mixed(i, n);
        da[n] = mix0.v[i][n] * upstream[n];
        db[n] = mix1.v[i][n] * upstream[n];
        sum0.v[i][n] += upstream[n] * a.v[i][n];
        sum1.v[i][n] += upstream[n] * b.v[i][n];
      }
      if (dx) store<N>(dx, row * width + column, da, accumulate_dx);
      if (dx0) store<N>(dx0, row * width + column, db, accumulate_dx0);
    });
  }
  if (!partial) return;
  for_columns<N>(group, [&](int i, int column) {
    store_floats<N>(partial, group.index() * 2 * width + column, sum0.v[i]);
    store_floats<N>(partial, (group.index() * 2 + 1) * width + column, sum1.v[i]);
  });
}
