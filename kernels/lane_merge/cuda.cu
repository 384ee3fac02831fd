// lane_merge on lane0, lane1, a, m [rows, width]; A = attn_scale a, M = mlp_scale m:
//   out0 = rho0 lane0 + post[0,0] A + post[1,0] M,   out1 = rho1 lane1 + post[0,1] A + post[1,1] M
// Backward, with g0 = dout0, g1 = dout1 (absent: zero) and
//   GA = post[0,0] g0 + post[0,1] g1,  GM = post[1,0] g0 + post[1,1] g1:
//   dlane0 (+)= rho0 g0,  dlane1 (+)= rho1 g1,  da (+)= attn_scale GA,  dm (+)= mlp_scale GM,
//   dattn_scale += sum GA a,  dmlp_scale += sum GM m  (over rows),
//   drho_i += sum g_i lane_i,  dpost[0,i] += sum g_i A,  dpost[1,i] += sum g_i M  (over rows and columns)
//
// Determinism: rows are independent; all sums go through partial sums of fixed pieces of rows (columns.cuh).
#include <mulligan/cuda/columns.cuh>
#include <mulligan/cuda/lanes.cuh>

MLG_CONST_INT(accumulate_dlane0)
MLG_CONST_INT(accumulate_dlane1)
MLG_CONST_INT(accumulate_da)
MLG_CONST_INT(accumulate_dm)

MLG_KERNEL(lane_merge_fwd, MLG_ROW_CONSTANTS)
template <typename T, int N>
__global__ void __launch_bounds__(row_block)
    lane_merge_fwd(global<const T> lane0, global<const T> lane1, global<const T> a, global<const T> m,
                   global<const float> attn_scale, global<const float> mlp_scale, global<const float> rho,
                   global<const float> post, global<T> out0, global<T> out1, long long rows,
                   int rows_per_group) {
  RowGroup group(rows, rows_per_group);
  if (group.row >= rows) return;
  const LaneWeights weights(rho, post);
  for_slices(group, [&] {
    RowValues<N> of_a, of_m;
    load_columns<N>(group, attn_scale, 0, of_a);
    load_columns<N>(group, mlp_scale, 0, of_m);
    for (long long row = group.row; row < group.end; ++row) {
      for_columns<N>(group, [&](int i, int column) {
        const long long at = row * width + column;
        float x0[N], x1[N], attention[N], mlp[N];
        load<N>(lane0, at, x0);
        load<N>(lane1, at, x1);
        load<N>(a, at, attention);
        load<N>(m, at, mlp);
        MLG_UNROLL
        for (int n = 0; n < N; ++n) {
          const float scaled_a = of_a.v[i][n] * attention[n], scaled_m = of_m.v[i][n] * mlp[n];
          x0[n] = weights.out0(x0[n], scaled_a, scaled_m);
          x1[n] = weights.out1(x1[n], scaled_a, scaled_m);
        }
        store<N>(out0, at, x0);
        store<N>(out1, at, x1);
      });
    }
  });
}

// dout0, dout1, dlane0, dlane1, da, dm may be null. Partial sums [blocks, width] of dattn_scale and
// dmlp_scale, [groups, 2] of drho, [groups, 4] of dpost; each null where its gradient is absent.
MLG_KERNEL(lane_merge_bwd, accumulate_dlane0, accumulate_dlane1, accumulate_da, accumulate_dm,
           MLG_ROW_CONSTANTS)
template <typename T, int N>
__global__ void __launch_bounds__(row_block)
    lane_merge_bwd(global<const T> lane0, global<const T> lane1, global<const T> a, global<const T> m,
                   global<const float> attn_scale, global<const float> mlp_scale, global<const float> rho,
                   global<const float> post, global<const T> dout0, global<const T> dout1, global<T> dlane0,
                   global<T> dlane1, global<T> da, global<T> dm, global<float> partial_attn,
                   global<float> partial_mlp, global<float> partial_rho, global<float> partial_post,
                   long long rows, int rows_per_group) {
  __shared__ shared_array<float, 32> scratch;
  __shared__ GroupScratch group_scratch;
  RowGroup group(rows, rows_per_group);
  const LaneWeights weights(rho, post);
  LaneSums sums;
  for_slices(group, [&] {
    RowValues<N> of_a, of_m, sum_a, sum_m;
    load_columns<N>(group, attn_scale, 0, of_a);
    load_columns<N>(group, mlp_scale, 0, of_m);
    clear<N>(group, sum_a);
    clear<N>(group, sum_m);
    for (long long row = group.row; row < group.end; ++row) {
      RowPacks<T, N> x0, x1, of_attention, of_mlp, d0, d1, before[4];
      load_packs(group, lane0, row, x0);
      load_packs(group, lane1, row, x1);
      load_packs(group, a, row, of_attention);
      load_packs(group, m, row, of_mlp);
      load_packs_or_zeros(group, dout0, row, d0);
      load_packs_or_zeros(group, dout1, row, d1);
      if (dlane0 && accumulate_dlane0) load_packs(group, dlane0, row, before[0]);
      if (dlane1 && accumulate_dlane1) load_packs(group, dlane1, row, before[1]);
      if (da && accumulate_da) load_packs(group, da, row, before[2]);
      if (dm && accumulate_dm) load_packs(group, dm, row, before[3]);
      for_columns<N>(group, [&](int i, int column) {
        const long long at = row * width + column;
        float g0[N], g1[N], attention[N], mlp[N];
        MLG_UNROLL
        for (int n = 0; n < N; ++n) {
          g0[n] = d0(i, n);
          g1[n] = d1(i, n);
          const float scaled_a = of_a.v[i][n] * of_attention(i, n), scaled_m = of_m.v[i][n] * of_mlp(i, n);
          const float to_attention = weights.to_attention(g0[n], g1[n]),
                      to_mlp = weights.to_mlp(g0[n], g1[n]);
          sums.add(g0[n], g1[n], x0(i, n), x1(i, n), scaled_a, scaled_m);
          sum_a.v[i][n] += to_attention * of_attention(i, n);
          sum_m.v[i][n] += to_mlp * of_mlp(i, n);
          attention[n] = of_a.v[i][n] * to_attention;
          mlp[n] = of_m.v[i][n] * to_mlp;
          g0[n] *= weights.rho0;
          g1[n] *= weights.rho1;
        }
        if (dlane0) store_onto(dlane0, at, g0, before[0], i, accumulate_dlane0);
        store_onto_after(dlane0, dlane1, at, g1, before[1], i, accumulate_dlane1);
        if (da) store_onto(da, at, attention, before[2], i, accumulate_da);
        if (dm) store_onto(dm, at, mlp, before[3], i, accumulate_dm);
      });
    }
    const long long part = blockIdx.x * (long long)(width);
    end_sums(group, partial_attn, part, sum_a, group_scratch);
    end_sums(group, partial_mlp, part, sum_m, group_scratch);
  });
  sums.store(group, rows, partial_rho, partial_post, scratch);
}
