// weighted_rms_norm on x [rows, width] and weight [width]:  r = 1 / sqrt(mean(x^2) + eps),  y = weight r x
//   with g = weight dy:  dx (+)= r (g - x r^2 mean(g x)),  dweight += sum over rows of dy r x
//
// A group of threads per row, the row in registers. Determinism: rows are independent; a row's sum has a
// fixed order; dweight goes through partial sums of fixed pieces of rows (columns.cuh).
#include <mulligan/cuda/columns.cuh>
#include <mulligan/cuda/rows.cuh>

MLG_CONST_FLOAT(eps)
MLG_CONST_INT(accumulate_dx)

MLG_KERNEL(weighted_rms_norm_fwd, eps, MLG_ROW_CONSTANTS)
template <typename T, int N>
__global__ void __launch_bounds__(row_block)
    weighted_rms_norm_fwd(global<const T> x, global<const float> weight, global<T> y, long long rows) {
  __shared__ shared_array<float, 32> scratch;
  RowGroup group(rows, 1);
  if (group.row >= rows) return;
  RowValues<N> values;
  float squares = 0;
  for_slices(group, [&] {
    load_row<N>(group, x, group.row, values);
    squares += slice_sum<N>(group, [&](int i, int n) { return values.v[i][n] * values.v[i][n]; });
  });
  const float r = reciprocal_rms(group_sum(squares, scratch), eps);
  for_slices(group, [&] {
    if (slices > 1) load_row<N>(group, x, group.row, values);
    for_columns<N>(group, [&](int i, int column) {
      float w[N];
      load<N>(weight, column, w);
      MLG_UNROLL
      for (int n = 0; n < N; ++n) values.v[i][n] = w[n] * (r * values.v[i][n]);
    });
    store_row<N>(group, y, group.row, values);
  });
}

// dx may be null. partial: [blocks, width], or null without dweight.
MLG_KERNEL(weighted_rms_norm_bwd, eps, accumulate_dx, MLG_ROW_CONSTANTS)
template <typename T, int N>
__global__ void __launch_bounds__(row_block)
    weighted_rms_norm_bwd(global<const T> x, global<const float> weight, global<const T> dy, global<T> dx,
                          global<float> partial, long long rows, int rows_per_group) {
  __shared__ shared_array<float, 32> scratch;
  __shared__ GroupScratch group_scratch;
  RowGroup group(rows, rows_per_group);
  const long long at = blockIdx.x * (long long)(width);  // in partial
  RowValues<N> weights, sums;
  if (slices == 1) {
    load_columns<N>(group, weight, 0, weights);
    begin_sums(group, true, partial, at, sums);
  }
  for (long long row = group.row; row < group.end; ++row) {
    RowPacks<T, N> values, upstream, before;
    const auto fill = [&](bool stores) {
      load_packs(group, x, row, values);
      load_packs(group, dy, row, upstream);
      if (slices > 1) load_columns<N>(group, weight, 0, weights);
      if (stores && dx && accumulate_dx) load_packs(group, dx, row, before);
    };
    if (slices == 1) fill(true);
    float squares = 0, product = 0;
    for_slices(group, [&] {
      if (slices > 1) fill(false);
      squares += slice_sum<N>(group, [&](int i, int n) { return values(i, n) * values(i, n); });
      product +=
          slice_sum<N>(group, [&](int i, int n) { return weights.v[i][n] * upstream(i, n) * values(i, n); });
    });
    const NormGradient norm(group_sum(squares, scratch), group_sum(product, scratch), 1.0f, eps);
    for_slices(group, [&] {
      if (slices > 1) {
        fill(true);
        begin_sums(group, row == group.row, partial, at, sums);
      }
      for_columns<N>(group, [&](int i, int column) {
        float gradient[N];
        MLG_UNROLL
        for (int n = 0; n < N; ++n) {
          gradient[n] = norm.factor * weights.v[i][n] * upstream(i, n) - norm.along * values(i, n);
          sums.v[i][n] += upstream(i, n) * (norm.factor * values(i, n));
        }
        if (dx) store_onto(dx, row * width + column, gradient, before, i, accumulate_dx);
      });
      if (slices > 1) end_sums(group, partial, at, sums, group_scratch);
    });
  }
  if (slices == 1) end_sums(group, partial, at, sums, group_scratch);
}
