// residual_chain: what stands between two blocks, in one pass over memory. x, a, skip, x0 [rows, width]; s,
// weight w, gate [width]; mix [2, width]:
//   sum = x + s a (without s x + a),  merged = k sum + (1-k) w skip,  y = mix0 merged + mix1 x0,  n = scale norm(y)
// with k = sigmoid(gate); without gate merged = sum + w skip; without weight w = 0; without skip it is sum.
//   g = dy + norm'(dn):  with r = 1 / sqrt(mean(y^2) + eps):  g = dy + scale r (dn - y r^2 mean(dn y))
//   dx0 (+)= mix1 g,  dmix += (sum g merged, sum g x0),  m = dmerged + mix0 g
//   dskip (+)= (1-k) w m,  dw += (1-k) sum(m skip),  dgate += k (1-k) sum(m (sum - w skip))
//   t = dsum + k m (without skip + (1-k) w m),  dx (+)= t,  da (+)= s t,  ds += sum t a   (sums over rows)
//
// What does not cross memory is not rounded. All that is read of a row is loaded before anything of it is
// stored; what belongs to the columns comes from the first-level cache, which leaves the registers to the row
// and to the sums. Determinism: rows are independent; sums go through partial sums of fixed
// pieces of rows (columns.cuh).
#include <mulligan/cuda/column_vectors.cuh>
#include <mulligan/cuda/columns.cuh>
#include <mulligan/cuda/rows.cuh>

MLG_CONST_FLOAT(scale)
MLG_CONST_FLOAT(eps)
MLG_CONST_INT(merges)  // weight or gate are given
MLG_CONST_INT(skips)   // skip is given
MLG_CONST_INT(accumulate_dx)
MLG_CONST_INT(accumulate_da)
MLG_CONST_INT(accumulate_dskip)
MLG_CONST_INT(accumulate_dx0)

// s, skip, weight, gate, sum, merged, y may be null.
MLG_KERNEL(residual_chain_fwd, scale, eps, merges, skips, MLG_ROW_CONSTANTS)
template <typename T, int N>
__global__ void __launch_bounds__(row_block)
    residual_chain_fwd(global<const T> x, global<const T> a, global<const float> s, global<const T> skip,
                       global<const float> weight, global<const float> gate, global<const T> x0,
                       global<const float> mix, global<T> sum, global<T> merged, global<T> y,
                       global<T> normed, long long rows) {
  __shared__ shared_array<float, 32> scratch;
  RowGroup group(rows, 1);
  if (group.row >= rows) return;
  RowValues<N> values;
  const auto fill = [&](bool store_results) {
    RowPacks<T, N> of_x, of_a, of_skip, of_x0;
    load_packs(group, x, group.row, of_x);
    load_packs(group, a, group.row, of_a);
    if (merges && skips) load_packs(group, skip, group.row, of_skip);
    load_packs(group, x0, group.row, of_x0);
    for_columns<N>(group, [&](int i, int column) {
      const long long at = group.row * width + column;
      float of_column[N], mix1[N], result[N];
      load_scales<N>(s, column, of_column);
      MLG_UNROLL
      for (int n = 0; n < N; ++n) result[n] = of_x(i, n) + of_column[n] * of_a(i, n);
      if (store_results && sum) store<N>(sum, at, result);
      if (merges) {
        const MergeColumns<N> columns(weight, gate, column);
        MLG_UNROLL
        for (int n = 0; n < N; ++n) {
          result[n] = columns.merge(n, result[n], skips ? of_skip(i, n) : result[n]);
        }
      }
      if (store_results && merged) store<N>(merged, at, result);
      load<N>(mix, column, of_column);
      load<N>(mix, width + column, mix1);
      MLG_UNROLL
      for (int n = 0; n < N; ++n) values.v[i][n] = of_column[n] * result[n] + mix1[n] * of_x0(i, n);
    });
  };
  float squares = 0;
  for_slices(group, [&] {
    fill(true);
    if (y) store_row<N>(group, y, group.row, values);
    squares += slice_sum<N>(group, [&](int i, int n) { return values.v[i][n] * values.v[i][n]; });
  });
  const float factor = scale * reciprocal_rms(group_sum(squares, scratch), eps);
  for_slices(group, [&] {
    if (slices > 1) fill(false);
    scale_row<N>(group, values, factor);
    store_row<N>(group, normed, group.row, values);
  });
}

// The gradients of activations, s, skip, weight, gate, dsum, dmerged, dy, dn may be null; dsum and dmerged
// may be dx. Partial sums of ds, dmix, dweight, dgate: [blocks, width or 2 width], or null without them.
MLG_KERNEL(residual_chain_bwd, scale, eps, merges, skips, accumulate_dx, accumulate_da, accumulate_dskip,
           accumulate_dx0, MLG_ROW_CONSTANTS)
template <typename T, int N>
__global__ void __launch_bounds__(row_block, 1)  // 1: registers go before resident blocks, so none is spilled
    residual_chain_bwd(global<const T> x, global<const T> a, global<const float> s, global<const T> skip,
                       global<const float> weight, global<const float> gate, global<const T> x0,
                       global<const float> mix, global<const T> dsum, global<const T> dmerged,
                       global<const T> dy, global<const T> dn, global<T> dx, global<T> da, global<T> dskip,
                       global<T> dx0, global<float> partial_s, global<float> partial_mix,
                       global<float> partial_weight, global<float> partial_gate, long long rows,
                       int rows_per_group) {
  __shared__ shared_array<float, 32> scratch;
  __shared__ GroupScratch group_scratch;
  RowGroup group(rows, rows_per_group);
  const long long part = blockIdx.x;
  RowValues<N> sum_s, sum_mix0, sum_mix1, sum_weight, sum_gate;
  // What the rows before this one left in a slice's partial sums: in registers where a row has one slice.
  const auto begin_all = [&](bool first) {
    begin_sums(group, first, partial_s, part * width, sum_s);
    begin_sums(group, first, partial_mix, part * 2 * width, sum_mix0);
    begin_sums(group, first, partial_mix, part * 2 * width + width, sum_mix1);
    if (!merges) return;
    begin_sums(group, first, partial_weight, part * width, sum_weight);
    begin_sums(group, first, partial_gate, part * width, sum_gate);
  };
  const auto end_all = [&] {
    end_sums(group, partial_s, part * width, sum_s, group_scratch);
    end_sums(group, partial_mix, part * 2 * width, sum_mix0, group_scratch);
    end_sums(group, partial_mix, part * 2 * width + width, sum_mix1, group_scratch);
    if (!merges) return;
    end_sums(group, partial_weight, part * width, sum_weight, group_scratch);
    end_sums(group, partial_gate, part * width, sum_gate, group_scratch);
  };
  if (slices == 1) begin_all(true);
  for (long long row = group.row; row < group.end; ++row) {
    RowPacks<T, N> of_x, of_a, of_skip, of_x0, of_dn, of_dy, of_dmerged, of_dsum, of_dx0, of_dskip;
    const auto fill = [&](bool gradients) {
      load_packs(group, x, row, of_x);
      load_packs(group, a, row, of_a);
      if (merges && skips) load_packs(group, skip, row, of_skip);
      load_packs(group, x0, row, of_x0);
      load_packs_or_zeros(group, dn, row, of_dn);
      if (!gradients) return;
      load_packs_or_zeros(group, dy, row, of_dy);
      load_packs_or_zeros(group, dmerged, row, of_dmerged);
      load_packs_or_zeros(group, dsum, row, of_dsum);
      if (dx0 && accumulate_dx0) load_packs(group, dx0, row, of_dx0);
      if (dskip && accumulate_dskip) load_packs(group, dskip, row, of_dskip);
    };
    // What the forward pass had at an access of the thread. (No generic lambda: NVRTC takes
    // those for host code.)
    const auto forward = [&](int i, int column, float(&sum)[N], float(&merged)[N], float(&mix0)[N],
                             float(&mix1)[N]) {
      load_scales<N>(s, column, mix0);
      MLG_UNROLL
      for (int n = 0; n < N; ++n) {
        merged[n] = sum[n] = of_x(i, n) + mix0[n] * of_a(i, n);
      }
      if (merges) {
        const MergeColumns<N> columns(weight, gate, column);
        MLG_UNROLL
        for (int n = 0; n < N; ++n) {
          merged[n] = columns.merge(n, sum[n], skips ? of_skip(i, n) : sum[n]);
        }
      }
      load<N>(mix, column, mix0);
      load<N>(mix, width + column, mix1);
    };
    if (slices == 1) fill(true);
    NormGradient norm;
    if (dn) {
      float squares = 0, product = 0;
      for_slices(group, [&] {
        if (slices > 1) fill(false);
        for_columns<N>(group, [&](int i, int column) {
          float sum[N], merged[N], mix0[N], mix1[N];
          forward(i, column, sum, merged, mix0, mix1);
          MLG_UNROLL
          for (int n = 0; n < N; ++n) {
            const float y = mix0[n] * merged[n] + mix1[n] * of_x0(i, n);
            squares += y * y;
            product += y * of_dn(i, n);
          }
        });
      });
      norm = NormGradient(group_sum(squares, scratch), group_sum(product, scratch), scale, eps);
    }
    for_slices(group, [&] {
      if (slices > 1) {
        fill(true);
        begin_all(row == group.row);
      }
      for_columns<N>(group, [&](int i, int column) {
        float sum[N], merged[N], mix0[N], mix1[N];
        forward(i, column, sum, merged, mix0, mix1);
        const long long at = row * width + column;
        float of_merged[N], of_sum[N], result[N];
        MLG_UNROLL
        for (int n = 0; n < N; ++n) {
          const float y = mix0[n] * merged[n] + mix1[n] * of_x0(i, n);
          const float g = of_dy(i, n) + (norm.factor * of_dn(i, n) - norm.along * y);
          sum_mix0.v[i][n] += g * merged[n];
          sum_mix1.v[i][n] += g * of_x0(i, n);
          of_merged[n] = of_dmerged(i, n) + mix0[n] * g;
          result[n] = mix1[n] * g;
          if (dx0 && accumulate_dx0) result[n] += of_dx0(i, n);
          of_sum[n] = of_merged[n];
        }
        if (dx0) store<N>(dx0, at, result);
        if (merges) {
          const MergeColumns<N> columns(weight, gate, column);
          MLG_UNROLL
          for (int n = 0; n < N; ++n) {
            const float other = skips ? of_skip(i, n) : sum[n];
            sum_weight.v[i][n] += of_merged[n] * other;
            sum_gate.v[i][n] += of_merged[n] * (sum[n] - columns.w[n] * other);
            of_sum[n] = columns.of_sum[n] * of_merged[n];
            result[n] = columns.rest[n] * columns.w[n] * of_merged[n];
          }
        }
        MLG_UNROLL
        for (int n = 0; n < N; ++n) {
          of_sum[n] += of_dsum(i, n);
          if (merges && !skips) of_sum[n] += result[n];
          if (!merges) result[n] = 0;
          if (dskip && accumulate_dskip) result[n] += of_dskip(i, n);
        }
        if (dskip) store<N>(dskip, at, result);
        if (dx) store<N>(dx, at, of_sum, accumulate_dx);
        load_scales<N>(s, column, result);
        MLG_UNROLL
        for (int n = 0; n < N; ++n) {
          sum_s.v[i][n] += of_sum[n] * of_a(i, n);
          result[n] *= of_sum[n];
        }
        if (da) store<N>(da, at, result, accumulate_da);
      });
      if (slices > 1) end_all();
    });
  }
  // d merged / d weight = (1-k) skip,  d merged / d gate = k (1-k) (sum - w skip)
  for_slices(group, [&] {
    if (slices > 1) begin_all(group.row >= group.end);
    if (merges) {
      for_columns<N>(group, [&](int i, int column) {
        const MergeColumns<N> columns(weight, gate, column);
        MLG_UNROLL
        for (int n = 0; n < N; ++n) {
          sum_weight.v[i][n] *= columns.rest[n];
          sum_gate.v[i][n] *= columns.of_sum[n] * columns.rest[n];
        }
      });
    }
    end_all();
  });
}
