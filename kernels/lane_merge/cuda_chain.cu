// lane_chain: what stands between two blocks of two lanes. lane_mean_norm: what follows the last block. Each is one pass
// over memory. lane0, lane1, a, m, skip, x0 [rows, width]; attn_scale, mlp_scale, weight w,
// gate [width]; rho [2]; post [2, 2]; mix [2, width]; A = attn_scale a, M = mlp_scale m:
//   out0 = rho0 lane0 + post[0,0] A + post[1,0] M,   out1 = rho1 lane1 + post[0,1] A + post[1,1] M
//   merged = k out0 + (1-k) w skip  with k = sigmoid(gate); without gate out0 + w skip; w or skip absent: zero
//   lane_chain:      y0 = mix0 merged + mix1 x0,  n0 = scale norm(y0),  n1 = scale norm(out1)
//   lane_mean_norm:  y0 = (out0 + out1) / 2,  n0 = scale norm(y0)
// Backward, with norm'(dn) as in residual_chain.cu:
//   lane_chain:      g = norm'(dn0),  c = dmerged + mix0 g,  g1 = dout1 + norm'(dn1),  dx0 (+)= mix1 g,
//                    dmix += (sum g merged, sum g x0)  (over rows)
//   lane_mean_norm:  c = g1 = norm'(dn0) / 2
//   dskip (+)= (1-k) w c,  dw += (1-k) sum(c skip),  dgate += k (1-k) sum(c (out0 - w skip)),  g0 = k c
// and from g0, g1 what lane_merge.cu makes of dout0, dout1.
//
// What does not cross memory is not rounded. All that is read of a row is loaded before anything of it is
// stored. Determinism: rows are independent; sums go through partial sums of fixed
// pieces of rows (columns.cuh).
#include <mulligan/cuda/column_vectors.cuh>
#include <mulligan/cuda/columns.cuh>
#include <mulligan/cuda/lanes.cuh>

MLG_CONST_FLOAT(scale)
MLG_CONST_FLOAT(eps)
MLG_CONST_INT(mixes)   // lane_chain
MLG_CONST_INT(merges)  // weight or gate are given
MLG_CONST_INT(accumulate_dlane0)
MLG_CONST_INT(accumulate_dlane1)
MLG_CONST_INT(accumulate_da)
MLG_CONST_INT(accumulate_dm)
MLG_CONST_INT(accumulate_dskip)
MLG_CONST_INT(accumulate_dx0)

// The inputs of both passes for a row, and what the lanes become.
template <typename T, int N>
struct LaneRow : LaneWeights {
  RowPacks<T, N> lane0, lane1, a, m, skip, x0;

  using LaneWeights::LaneWeights;

  // out0 and out1 at access i of the thread, from the scaled results of attention and MLP.
  __device__ void merge(int i, const float (&attention)[N], const float (&mlp)[N], float (&out0)[N],
                        float (&out1)[N]) const {
    MLG_UNROLL
    for (int n = 0; n < N; ++n) {
      out0[n] = LaneWeights::out0(lane0(i, n), attention[n], mlp[n]);
      out1[n] = LaneWeights::out1(lane1(i, n), attention[n], mlp[n]);
    }
  }
  // The same from `column` on, with what the scales make of a and m there.
  __device__ void compute(int i, int column, global<const float> attn_scale, global<const float> mlp_scale,
                          float (&attention)[N], float (&mlp)[N], float (&out0)[N], float (&out1)[N]) const {
    load<N>(attn_scale, column, attention);
    load<N>(mlp_scale, column, mlp);
    MLG_UNROLL
    for (int n = 0; n < N; ++n) attention[n] *= a(i, n), mlp[n] *= m(i, n);
    merge(i, attention, mlp, out0, out1);
  }
};

// skip, weight, gate may be null; without `mixes` so are x0, mix, merged, out1 and n1.
MLG_KERNEL(lane_chain_fwd, scale, eps, mixes, merges, MLG_ROW_CONSTANTS)
template <typename T, int N>
__global__ void __launch_bounds__(row_block, 1)  // 1: registers go before resident blocks, so none is spilled
    lane_chain_fwd(global<const T> lane0, global<const T> lane1, global<const T> a, global<const T> m,
                   global<const float> attn_scale, global<const float> mlp_scale, global<const float> rho,
                   global<const float> post, global<const T> skip, global<const float> weight,
                   global<const float> gate, global<const T> x0, global<const float> mix, global<T> merged,
                   global<T> out1, global<T> n0, global<T> n1, long long rows) {
  __shared__ shared_array<float, 32> scratch;
  RowGroup group(rows, 1);
  if (group.row >= rows) return;
  LaneRow<T, N> row(rho, post);
  RowValues<N> first, second;  // y0, out1
  const auto fill = [&](bool store_results) {
    load_packs(group, lane0, group.row, row.lane0);
    load_packs(group, lane1, group.row, row.lane1);
    load_packs(group, a, group.row, row.a);
    load_packs(group, m, group.row, row.m);
    if (merges) load_packs_or_zeros(group, skip, group.row, row.skip);
    if (mixes) load_packs(group, x0, group.row, row.x0);
    for_columns<N>(group, [&](int i, int column) {
      const long long at = group.row * width + column;
      float attention[N], mlp[N], result[N];
      row.compute(i, column, attn_scale, mlp_scale, attention, mlp, result, second.v[i]);
      if (merges) {
        const MergeColumns<N> columns(weight, gate, column);
        MLG_UNROLL
        for (int n = 0; n < N; ++n) result[n] = columns.merge(n, result[n], row.skip(i, n));
      }
      if (store_results && mixes) store<N>(merged, at, result);
      if (mixes) {
        load<N>(mix, column, attention);
        load<N>(mix, width + column, mlp);
      }
      MLG_UNROLL
      for (int n = 0; n < N; ++n) {
        first.v[i][n] =
            mixes ? attention[n] * result[n] + mlp[n] * row.x0(i, n) : 0.5f * (result[n] + second.v[i][n]);
      }
    });
  };
  float squares0 = 0, squares1 = 0;
  for_slices(group, [&] {
    fill(true);
    if (mixes) store_row<N>(group, out1, group.row, second);
    squares0 += slice_sum<N>(group, [&](int i, int n) { return first.v[i][n] * first.v[i][n]; });
    squares1 += slice_sum<N>(group, [&](int i, int n) { return second.v[i][n] * second.v[i][n]; });
  });
  const float factor0 = scale * reciprocal_rms(group_sum(squares0, scratch), eps);
  const float factor1 = scale * reciprocal_rms(group_sum(squares1, scratch), eps);
  for_slices(group, [&] {
    if (slices > 1) fill(false);
    scale_row<N>(group, first, factor0);
    store_row<N>(group, n0, group.row, first);
    if (!mixes) return;
    scale_row<N>(group, second, factor1);
    store_row<N>(group, n1, group.row, second);
  });
}

// The gradients of activations, skip, weight, gate, dmerged, dout1, dn0, dn1 may be null; without `mixes` so
// are x0 and mix. dlane1 may be dlane0, and is then added to it. Partial sums of dattn_scale, dmlp_scale,
// dmix, dweight, dgate: [blocks, width or 2 width]; of drho and dpost: [groups, 2] and [groups, 4]; null
// without them.
MLG_KERNEL(lane_chain_bwd, scale, eps, mixes, merges, accumulate_dlane0, accumulate_dlane1, accumulate_da,
           accumulate_dm, accumulate_dskip, accumulate_dx0, MLG_ROW_CONSTANTS)
template <typename T, int N>
__global__ void __launch_bounds__(row_block, 1)
    lane_chain_bwd(global<const T> lane0, global<const T> lane1, global<const T> a, global<const T> m,
                   global<const float> attn_scale, global<const float> mlp_scale, global<const float> rho,
                   global<const float> post, global<const T> skip, global<const float> weight,
                   global<const float> gate, global<const T> x0, global<const float> mix,
                   global<const T> dmerged, global<const T> dout1, global<const T> dn0, global<const T> dn1,
                   global<T> dlane0, global<T> dlane1, global<T> da, global<T> dm, global<T> dskip,
                   global<T> dx0, global<float> partial_attn, global<float> partial_mlp,
                   global<float> partial_rho, global<float> partial_post, global<float> partial_mix,
                   global<float> partial_weight, global<float> partial_gate, long long rows,
                   int rows_per_group) {
  __shared__ shared_array<float, 32> scratch;
  __shared__ GroupScratch group_scratch;
  RowGroup group(rows, rows_per_group);
  const long long part = blockIdx.x;
  LaneRow<T, N> of(rho, post);
  RowValues<N> sum_attn, sum_mlp, sum_mix0, sum_mix1, sum_weight, sum_gate;
  LaneSums sums;
  // A slice's partial sums: in registers where a row has one slice, else in memory, which every row adds to.
  const auto begin_all = [&](bool first) {
    begin_sums(group, first, partial_attn, part * width, sum_attn);
    begin_sums(group, first, partial_mlp, part * width, sum_mlp);
    if (mixes) {
      begin_sums(group, first, partial_mix, part * 2 * width, sum_mix0);
      begin_sums(group, first, partial_mix, part * 2 * width + width, sum_mix1);
    }
    if (!merges) return;
    begin_sums(group, first, partial_weight, part * width, sum_weight);
    begin_sums(group, first, partial_gate, part * width, sum_gate);
  };
  const auto end_all = [&] {
    end_sums(group, partial_attn, part * width, sum_attn, group_scratch);
    end_sums(group, partial_mlp, part * width, sum_mlp, group_scratch);
    if (mixes) {
      end_sums(group, partial_mix, part * 2 * width, sum_mix0, group_scratch);
      end_sums(group, partial_mix, part * 2 * width + width, sum_mix1, group_scratch);
    }
    if (!merges) return;
    end_sums(group, partial_weight, part * width, sum_weight, group_scratch);
    end_sums(group, partial_gate, part * width, sum_gate, group_scratch);
  };
  const auto add_to = [&](RowValues<N>& values, global<float> partial, long long at, int i, int column,
                          const float(&added)[N]) {
    float before[N];
    if (slices > 1 && !partial) return;
    if (slices > 1) load<N>(partial, at + column, before);
    MLG_UNROLL
    for (int n = 0; n < N; ++n) {
      if (slices > 1) {
        before[n] += added[n];
      } else {
        values.v[i][n] += added[n];
      }
    }
    if (slices > 1) store<N>(partial, at + column, before);
  };
  for_slices(group, [&] {
    begin_all(true);
    if (slices > 1) end_all();
  });
  for (long long row = group.row; row < group.end; ++row) {
    RowPacks<T, N> of_dmerged, of_dout1, of_dn0, of_dn1, before[6];
    const auto fill = [&](bool gradients) {
      load_packs(group, lane0, row, of.lane0);
      load_packs(group, lane1, row, of.lane1);
      load_packs(group, a, row, of.a);
      load_packs(group, m, row, of.m);
      if (merges) load_packs_or_zeros(group, skip, row, of.skip);
      if (mixes) load_packs(group, x0, row, of.x0);
      load_packs_or_zeros(group, dn0, row, of_dn0);
      if (mixes) load_packs_or_zeros(group, dn1, row, of_dn1);
      if (!gradients) return;
      if (mixes) load_packs_or_zeros(group, dmerged, row, of_dmerged);
      if (mixes) load_packs_or_zeros(group, dout1, row, of_dout1);
      if (dlane0 && accumulate_dlane0) load_packs(group, dlane0, row, before[0]);
      if (dlane1 && accumulate_dlane1) load_packs(group, dlane1, row, before[1]);
      if (da && accumulate_da) load_packs(group, da, row, before[2]);
      if (dm && accumulate_dm) load_packs(group, dm, row, before[3]);
      if (dskip && accumulate_dskip) load_packs(group, dskip, row, before[4]);
      if (dx0 && accumulate_dx0) load_packs(group, dx0, row, before[5]);
    };
    // What the forward pass had at an access of the thread, and what the mean or the mix made of it.
    const auto forward = [&](int i, int column, float(&out0)[N], float(&out1)[N], float(&merged)[N],
                             float(&mix0)[N], float(&mix1)[N], float(&y0)[N]) {
      float attention[N], mlp[N];
      of.compute(i, column, attn_scale, mlp_scale, attention, mlp, out0, out1);
      MLG_UNROLL
      for (int n = 0; n < N; ++n) merged[n] = out0[n], mix0[n] = mix1[n] = 0.5f;
      if (merges) {
        const MergeColumns<N> columns(weight, gate, column);
        MLG_UNROLL
        for (int n = 0; n < N; ++n) merged[n] = columns.merge(n, out0[n], of.skip(i, n));
      }
      if (mixes) {
        load<N>(mix, column, mix0);
        load<N>(mix, width + column, mix1);
      }
      MLG_UNROLL
      for (int n = 0; n < N; ++n) {
        y0[n] = mix0[n] * merged[n] + mix1[n] * (mixes ? of.x0(i, n) : out1[n]);
      }
    };
    if (slices == 1) fill(true);
    NormGradient norm0, norm1;
    if (dn0 || dn1) {
      float squares0 = 0, product0 = 0, squares1 = 0, product1 = 0;
      for_slices(group, [&] {
        if (slices > 1) fill(false);
        for_columns<N>(group, [&](int i, int column) {
          float out0[N], out1[N], merged[N], mix0[N], mix1[N], y0[N];
          forward(i, column, out0, out1, merged, mix0, mix1, y0);
          MLG_UNROLL
          for (int n = 0; n < N; ++n) {
            squares0 += y0[n] * y0[n];
            product0 += y0[n] * of_dn0(i, n);
            if (!mixes) continue;
            squares1 += out1[n] * out1[n];
            product1 += out1[n] * of_dn1(i, n);
          }
        });
      });
      norm0 = NormGradient(group_sum(squares0, scratch), group_sum(product0, scratch), scale, eps);
      if (mixes) norm1 = NormGradient(group_sum(squares1, scratch), group_sum(product1, scratch), scale, eps);
    }
    for_slices(group, [&] {
      if (slices > 1) fill(true);
      for_columns<N>(group, [&](int i, int column) {
        const long long at = row * width + column;
        float out0[N], out1[N], merged[N], mix0[N], mix1[N], y0[N];
        forward(i, column, out0, out1, merged, mix0, mix1, y0);
        float g0[N], g1[N];
        MLG_UNROLL
        for (int n = 0; n < N; ++n) {
          const float g = norm0.factor * of_dn0(i, n) - norm0.along * y0[n];
          g0[n] = mix0[n] * g;
          g1[n] = mix1[n] * g;  // the other lane's in the mean, x0's in the mix
          if (!mixes) continue;
          mix0[n] = g * merged[n];
          mix1[n] = g * of.x0(i, n);
          g0[n] += of_dmerged(i, n);
        }
        if (mixes) {
          add_to(sum_mix0, partial_mix, part * 2 * width, i, column, mix0);
          add_to(sum_mix1, partial_mix, part * 2 * width + width, i, column, mix1);
          if (dx0) store_onto(dx0, at, g1, before[5], i, accumulate_dx0);
          MLG_UNROLL
          for (int n = 0; n < N; ++n)
            g1[n] = of_dout1(i, n) + (norm1.factor * of_dn1(i, n) - norm1.along * out1[n]);
        }
        if (merges) {
          const MergeColumns<N> columns(weight, gate, column);
          MLG_UNROLL
          for (int n = 0; n < N; ++n) {
            mix0[n] = g0[n] * of.skip(i, n);
            mix1[n] = g0[n] * (out0[n] - columns.w[n] * of.skip(i, n));
            merged[n] = columns.rest[n] * columns.w[n] * g0[n];
            g0[n] *= columns.of_sum[n];
          }
          add_to(sum_weight, partial_weight, part * width, i, column, mix0);
          add_to(sum_gate, partial_gate, part * width, i, column, mix1);
        } else {
          MLG_UNROLL
          for (int n = 0; n < N; ++n) merged[n] = 0;
        }
        if (dskip) store_onto(dskip, at, merged, before[4], i, accumulate_dskip);
        load<N>(attn_scale, column, mix0);
        load<N>(mlp_scale, column, mix1);
        MLG_UNROLL
        for (int n = 0; n < N; ++n) {
          // Scaled again: to keep them from the forward pass would take registers that there are not.
          const float scaled_a = mix0[n] * of.a(i, n), scaled_m = mix1[n] * of.m(i, n);
          sums.add(g0[n], g1[n], of.lane0(i, n), of.lane1(i, n), scaled_a, scaled_m);
          const float to_attention = of.to_attention(g0[n], g1[n]), to_mlp = of.to_mlp(g0[n], g1[n]);
          out0[n] = mix0[n] * to_attention;
          out1[n] = mix1[n] * to_mlp;
          mix0[n] = to_attention * of.a(i, n);
          mix1[n] = to_mlp * of.m(i, n);
          g0[n] *= of.rho0;
          g1[n] *= of.rho1;
        }
        add_to(sum_attn, partial_attn, part * width, i, column, mix0);
        add_to(sum_mlp, partial_mlp, part * width, i, column, mix1);
        if (dlane0) store_onto(dlane0, at, g0, before[0], i, accumulate_dlane0);
        store_onto_after(dlane0, dlane1, at, g1, before[1], i, accumulate_dlane1);
        if (da) store_onto(da, at, out0, before[2], i, accumulate_da);
        if (dm) store_onto(dm, at, out1, before[3], i, accumulate_dm);
      });
    });
  }
  // d merged / d weight = (1-k) skip,  d merged / d gate = k (1-k) (out0 - w skip)
  for_slices(group, [&] {
    if (slices > 1) begin_all(false);
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
  sums.store(group, rows, partial_rho, partial_post, scratch);
}

// Seven sums over rows (columns.cuh), one after another in the grid; those without columns have no blocks.
MLG_KERNEL(add_seven_column_sums)
[[maybe_unused]] __global__ void __launch_bounds__(32 * kMostColumnWarps)
    add_seven_column_sums(global<const float> partial0, global<float> out0, int parts0, long long columns0,
                          global<const float> partial1, global<float> out1, int parts1, long long columns1,
                          global<const float> partial2, global<float> out2, int parts2, long long columns2,
                          global<const float> partial3, global<float> out3, int parts3, long long columns3,
                          global<const float> partial4, global<float> out4, int parts4, long long columns4,
                          global<const float> partial5, global<float> out5, int parts5, long long columns5,
                          global<const float> partial6, global<float> out6, int parts6, long long columns6) {
  __shared__ ColumnSumScratch sums;
  long long block = blockIdx.x;
  // Goes over to the next sum where the block is none of this one's.
  const auto next = [&](global<const float> partial, global<float> out, int parts, long long columns) {
    const long long blocks = (columns0 + 31) / 32;
    if (block < blocks) return;
    block -= blocks;
    partial0 = partial, out0 = out, parts0 = parts, columns0 = columns;
  };
  next(partial1, out1, parts1, columns1);
  next(partial2, out2, parts2, columns2);
  next(partial3, out3, parts3, columns3);
  next(partial4, out4, parts4, columns4);
  next(partial5, out5, parts5, columns5);
  next(partial6, out6, parts6, columns6);
  add_columns(partial0, out0, parts0, columns0, block, sums);
}
