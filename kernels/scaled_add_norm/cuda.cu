// scaled_add_norm on x, a [rows, width] and s [width]:  y = x + s a,  n = scale norm(y)
//   g = dy + norm'(dn):  with r = 1 / sqrt(mean(y^2) + eps):  g = dy + scale r (dn - y r^2 mean(dn y))
//   dx (+)= g,  da (+)= s g,  ds += sum over rows of g a     (without s: 1)
//
// y is rounded to the compute dtype before it is normalised: the backward pass sees the same y.
// Determinism: rows are independent; ds goes through partial sums of fixed pieces of rows (columns.cuh).
#include <mulligan/cuda/column_vectors.cuh>
#include <mulligan/cuda/columns.cuh>
#include <mulligan/cuda/rows.cuh>

MLG_CONST_FLOAT(scale)
MLG_CONST_FLOAT(eps)
MLG_CONST_INT(accumulate_dx)
MLG_CONST_INT(accumulate_da)

// s and normed may be null.
MLG_KERNEL(scaled_add_norm_fwd, scale, eps, MLG_ROW_CONSTANTS)
template <typename T, int N>
__global__ void __launch_bounds__(row_block)
    scaled_add_norm_fwd(global<const T> x, global<const T> a, global<const float> s, global<T> y,
                        global<T> normed, long long rows) {
  __shared__ shared_array<float, 32> scratch;
  RowGroup group(rows, 1);
  if (group.row >= rows) return;
  RowValues<N> values;
  float squares = 0;
  for_slices(group, [&] {
    load_row<N>(group, x, group.row, values);
    for_columns<N>(group, [&](int i, int column) {
      float added[N], factor[N];
      load<N>(a, group.row * width + column, added);
      load_scales<N>(s, column, factor);
      MLG_UNROLL
      for (int n = 0; n < N; ++n) {
        values.v[i][n] = to_float(Narrow<T>::from(values.v[i][n] + factor[n] * added[n]));
      }
    });
    store_row<N>(group, y, group.row, values);
    squares += slice_sum<N>(group, [&](int i, int n) { return values.v[i][n] * values.v[i][n]; });
  });
  if (!normed) return;
  const float factor = scale * reciprocal_rms(group_sum(squares, scratch), eps);
  for_slices(group, [&] {
    if (slices > 1) load_row<N>(group, y, group.row, values);
    scale_row<N>(group, values, factor);
    store_row<N>(group, normed, group.row, values);
  });
}

// a, s, dy, dn, dx, da may be null; a only without ds. partial: [blocks, width], or null without ds.
MLG_KERNEL(scaled_add_norm_bwd, scale, eps, accumulate_dx, accumulate_da, MLG_ROW_CONSTANTS)
template <typename T, int N>
__global__ void __launch_bounds__(row_block)
    scaled_add_norm_bwd(global<const T> y, global<const T> a, global<const float> s, global<const T> dy,
                        global<const T> dn, global<T> dx, global<T> da, global<float> partial, long long rows,
                        int rows_per_group) {
  __shared__ shared_array<float, 32> scratch;
  __shared__ GroupScratch group_scratch;
  RowGroup group(rows, rows_per_group);
  const long long at = blockIdx.x * (long long)(width);  // in partial
  RowValues<N> scales, sums;
  if (slices == 1) {
    for_columns<N>(group, [&](int i, int column) { load_scales<N>(s, column, scales.v[i]); });
    begin_sums(group, true, partial, at, sums);
  }
  for (long long row = group.row; row < group.end; ++row) {
    RowPacks<T, N> values, g, upstream, added, before_x, before_a;
    const auto fill = [&](bool gradients) {
      load_packs_or_zeros(group, dn ? y : dn, row, values);
      load_packs_or_zeros(group, dn, row, g);
      if (!gradients) return;
      load_packs_or_zeros(group, dy, row, upstream);
      load_packs_or_zeros(group, partial ? a : global<const T>(), row, added);
      if (dx && accumulate_dx) load_packs(group, dx, row, before_x);
      if (da && accumulate_da) load_packs(group, da, row, before_a);
    };
    if (slices == 1) fill(true);
    NormGradient norm;
    if (dn) {
      float squares = 0, product = 0;
      for_slices(group, [&] {
        if (slices > 1) fill(false);
        squares += slice_sum<N>(group, [&](int i, int n) { return values(i, n) * values(i, n); });
        product += slice_sum<N>(group, [&](int i, int n) { return values(i, n) * g(i, n); });
      });
      norm = NormGradient(group_sum(squares, scratch), group_sum(product, scratch), scale, eps);
    }
    for_slices(group, [&] {
      if (slices > 1) {
        fill(true);
        for_columns<N>(group, [&](int i, int column) { load_scales<N>(s, column, scales.v[i]); });
        begin_sums(group, row == group.row, partial, at, sums);
      }
      for_columns<N>(group, [&](int i, int column) {
        float total[N], scaled[N];
        MLG_UNROLL
        for (int n = 0; n < N; ++n) {
          total[n] = upstream(i, n) + (norm.factor * g(i, n) - norm.along * values(i, n));
          scaled[n] = scales.v[i][n] * total[n];
          sums.v[i][n] += total[n] * added(i, n);
        }
        if (dx) store_onto(dx, row * width + column, total, before_x, i, accumulate_dx);
        if (da) store_onto(da, row * width + column, scaled, before_a, i, accumulate_da);
      });
      if (slices > 1) end_sums(group, partial, at, sums, group_scratch);
    });
  }
  if (slices == 1) end_sums(group, partial, at, sums, group_scratch);
}
