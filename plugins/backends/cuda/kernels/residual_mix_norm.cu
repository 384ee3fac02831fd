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
MLG_KERNEL(residual_mix_norm_fwd, scale, eps, MLG_ROW_CONSTANTS)
template <typename T, int N>
__global__ void __launch_bounds__(row_block)
    residual_mix_norm_fwd(global<const T> x, global<const T> x0, global<const float> mix, global<T> y,
                          global<T> normed, long long rows) {
  __shared__ shared_array<float, 32> scratch;
  RowGroup group(rows, 1);
  if (group.row >= rows) return;
  RowValues<N> values;
  const auto fill = [&] {
    for_columns<N>(group, [&](int i, int column) {
      float a[N], b[N], mix0[N], mix1[N];
      load<N>(x, group.row * width + column, a);
      load<N>(x0, group.row * width + column, b);
      load_floats<N>(mix, column, mix0);
      load_floats<N>(mix, width + column, mix1);
      MLG_UNROLL
      for (int n = 0; n < N; ++n) values.v[i][n] = mix0[n] * a[n] + mix1[n] * b[n];
    });
  };
  float squares = 0;
  for_slices(group, [&] {
    fill();
    if (y) store_row<N>(group, y, group.row, values);
    squares += slice_sum<N>(group, [&](int i, int n) { return values.v[i][n] * values.v[i][n]; });
  });
  const float factor = scale * reciprocal_rms(group_sum(squares, scratch), eps);
  for_slices(group, [&] {
    if (slices > 1) fill();
    scale_row<N>(group, values, factor);
    store_row<N>(group, normed, group.row, values);
  });
}

// dy, dn, dx, dx0 may be null. partial: [groups, 2, width], or null without dmix.
MLG_KERNEL(residual_mix_norm_bwd, scale, eps, accumulate_dx, accumulate_dx0, MLG_ROW_CONSTANTS)
template <typename T, int N>
__global__ void __launch_bounds__(row_block)
    residual_mix_norm_bwd(global<const T> x, global<const T> x0, global<const float> mix, global<const T> dy,
                          global<const T> dn, global<T> dx, global<T> dx0, global<float> partial,
                          long long rows, int rows_per_group) {
  __shared__ shared_array<float, 32> scratch;
  RowGroup group(rows, rows_per_group);
  if (group.row >= rows) return;
  const long long at0 = group.index() * 2 * width, at1 = at0 + width;  // in partial
  RowValues<N> mix0, mix1, sum0, sum1;
  const auto load_mix = [&] {
    load_columns<N>(group, mix, 0, mix0);
    load_columns<N>(group, mix, width, mix1);
  };
  const auto load_sums = [&](bool first) {
    if (first || !partial) {
      clear<N>(group, sum0);
      clear<N>(group, sum1);
    } else {
      load_columns<N>(group, partial, at0, sum0);
      load_columns<N>(group, partial, at1, sum1);
    }
  };
  const auto store_sums = [&] {
    if (!partial) return;
    store_columns<N>(group, partial, at0, sum0);
    store_columns<N>(group, partial, at1, sum1);
  };
  if (slices == 1) {
    load_mix();
    load_sums(true);
  }
  for (long long row = group.row; row < group.end; ++row) {
    RowValues<N> a, b, g;
    const auto fill = [&] {
      if (slices > 1) load_mix();
      load_row<N>(group, x, row, a);
      load_row<N>(group, x0, row, b);
      if (dn) load_row<N>(group, dn, row, g);
    };
    const auto mixed = [&](int i, int n) { return mix0.v[i][n] * a.v[i][n] + mix1.v[i][n] * b.v[i][n]; };
    if (slices == 1) fill();
    NormGradient norm;
    if (dn) {
      float squares = 0, product = 0;
      for_slices(group, [&] {
        if (slices > 1) fill();
        squares += slice_sum<N>(group, [&](int i, int n) { return mixed(i, n) * mixed(i, n); });
        product += slice_sum<N>(group, [&](int i, int n) { return mixed(i, n) * g.v[i][n]; });
      });
      norm = NormGradient(group_sum(squares, scratch), group_sum(product, scratch), scale, eps);
    }
    for_slices(group, [&] {
      if (slices > 1) {
        fill();
        load_sums(row == group.row);
      }
      for_columns<N>(group, [&](int i, int column) {
        float upstream[N] = {}, da[N], db[N];
        if (dy) load<N>(dy, row * width + column, upstream);
        MLG_UNROLL
        for (int n = 0; n < N; ++n) {
          if (dn) upstream[n] += norm.factor * g.v[i][n] - norm.along * mixed(i, n);
          da[n] = mix0.v[i][n] * upstream[n];
          db[n] = mix1.v[i][n] * upstream[n];
          sum0.v[i][n] += upstream[n] * a.v[i][n];
          sum1.v[i][n] += upstream[n] * b.v[i][n];
        }
        if (dx) store<N>(dx, row * width + column, da, accumulate_dx);
        if (dx0) store<N>(dx0, row * width + column, db, accumulate_dx0);
      });
      if (slices > 1) store_sums();
    });
  }
  if (slices == 1) store_sums();
}
