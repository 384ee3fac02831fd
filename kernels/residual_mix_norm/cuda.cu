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
      load<N>(mix, column, mix0);
      load<N>(mix, width + column, mix1);
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

// dy, dn, dx, dx0 may be null. partial: [blocks, 2, width], or null without dmix.
MLG_KERNEL(residual_mix_norm_bwd, scale, eps, accumulate_dx, accumulate_dx0, MLG_ROW_CONSTANTS)
template <typename T, int N>
__global__ void __launch_bounds__(row_block)
    residual_mix_norm_bwd(global<const T> x, global<const T> x0, global<const float> mix, global<const T> dy,
                          global<const T> dn, global<T> dx, global<T> dx0, global<float> partial,
                          long long rows, int rows_per_group) {
  __shared__ shared_array<float, 32> scratch;
  __shared__ GroupScratch group_scratch;
  RowGroup group(rows, rows_per_group);
  const long long at0 = blockIdx.x * 2LL * width, at1 = at0 + width;  // in partial
  RowValues<N> mix0, mix1, sum0, sum1;
  const auto load_mix = [&] {
    load_columns<N>(group, mix, 0, mix0);
    load_columns<N>(group, mix, width, mix1);
  };
  const auto begin = [&](bool first) {
    begin_sums(group, first, partial, at0, sum0);
    begin_sums(group, first, partial, at1, sum1);
  };
  const auto end = [&] {
    end_sums(group, partial, at0, sum0, group_scratch);
    end_sums(group, partial, at1, sum1, group_scratch);
  };
  if (slices == 1) {
    load_mix();
    begin(true);
  }
  for (long long row = group.row; row < group.end; ++row) {
    RowPacks<T, N> a, b, g, upstream, before, before0;
    const auto fill = [&](bool gradients) {
      if (slices > 1) load_mix();
      load_packs(group, x, row, a);
      load_packs(group, x0, row, b);
      load_packs_or_zeros(group, dn, row, g);
      if (!gradients) return;
      load_packs_or_zeros(group, dy, row, upstream);
      if (dx && accumulate_dx) load_packs(group, dx, row, before);
      if (dx0 && accumulate_dx0) load_packs(group, dx0, row, before0);
    };
    const auto mixed = [&](int i, int n) { return mix0.v[i][n] * a(i, n) + mix1.v[i][n] * b(i, n); };
    if (slices == 1) fill(true);
    NormGradient norm;
    if (dn) {
      float squares = 0, product = 0;
      for_slices(group, [&] {
        if (slices > 1) fill(false);
        squares += slice_sum<N>(group, [&](int i, int n) { return mixed(i, n) * mixed(i, n); });
        product += slice_sum<N>(group, [&](int i, int n) { return mixed(i, n) * g(i, n); });
      });
      norm = NormGradient(group_sum(squares, scratch), group_sum(product, scratch), scale, eps);
    }
    for_slices(group, [&] {
      if (slices > 1) {
        fill(true);
        begin(row == group.row);
      }
      for_columns<N>(group, [&](int i, int column) {
        float da[N], db[N];
        MLG_UNROLL
        for (int n = 0; n < N; ++n) {
          const float total = upstream(i, n) + (norm.factor * g(i, n) - norm.along * mixed(i, n));
          da[n] = mix0.v[i][n] * total;
          db[n] = mix1.v[i][n] * total;
          sum0.v[i][n] += total * a(i, n);
          sum1.v[i][n] += total * b(i, n);
        }
        if (dx) store_onto(dx, row * width + column, da, before, i, accumulate_dx);
        // x0 may be x, and dx0 then dx.
        store_onto_after(dx, dx0, row * width + column, db, before0, i, accumulate_dx0);
      });
      if (slices > 1) end();
    });
  }
  if (slices == 1) end();
}
