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

// What belongs to N columns.
template <int N>
struct LaneColumns {
  float attn_scale[N], mlp_scale[N], mix0[N], mix1[N];
  MergeColumns<N> merge;

  __device__ LaneColumns(global<const float> attention, global<const float> mlp, global<const float> mix,
                         const MergeColumns<N>& merge, int column)
      : merge(merge) {
    load_floats<N>(attention, column, attn_scale);
    load_floats<N>(mlp, column, mlp_scale);
    MLG_UNROLL
    for (int n = 0; n < N; ++n) mix0[n] = mix1[n] = 0.5f;
    if (!mixes) return;
    load_floats<N>(mix, column, mix0);
    load_floats<N>(mix, width + column, mix1);
  }
};

// What the forward pass makes of one element: A, M, the lanes, and the sum that is normalised.
struct LaneElement {
  float attention, mlp, out0, out1, merged, y0;
};

// The inputs of both passes for a row.
template <typename T, int N>
struct LaneRow : LaneWeights {
  RowPacks<T, N> lane0, lane1, a, m, skip, x0;

  using LaneWeights::LaneWeights;

  // Element n of access i, in column k of `of`.
  template <int Columns>
  __device__ LaneElement element(int i, int n, const LaneColumns<Columns>& of, int k) const {
    LaneElement e;
    e.attention = of.attn_scale[k] * a(i, n);
    e.mlp = of.mlp_scale[k] * m(i, n);
    e.out0 = LaneWeights::out0(lane0(i, n), e.attention, e.mlp);
    e.out1 = LaneWeights::out1(lane1(i, n), e.attention, e.mlp);
    e.merged = merges ? of.merge.merge(k, e.out0, skip(i, n)) : e.out0;
    e.y0 = of.mix0[k] * e.merged + of.mix1[k] * (mixes ? x0(i, n) : e.out1);
    return e;
  }
};

// skip, weight, gate may be null; without `mixes` so are x0, mix, merged, out1 and n1.
MLG_KERNEL(lane_chain_fwd, scale, eps, mixes, merges, MLG_ROW_CONSTANTS)
template <typename T, int N>
__global__ void __launch_bounds__(row_block, held* N <= 16 ? 512 / row_block : 1)
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
      constexpr int kStep = N < 2 ? N : 2;  // columns at a time
      float sums[N];
      MLG_UNROLL
      for (int begin = 0; begin < N; begin += kStep) {
        const MergeColumns<kStep> merge(weight, gate, column + begin);
        const LaneColumns<kStep> columns(attn_scale, mlp_scale, mix, merge, column + begin);
        MLG_UNROLL
        for (int k = 0; k < kStep; ++k) {
          const LaneElement e = row.element(i, begin + k, columns, k);
          first.v[i][begin + k] = e.y0;
          second.v[i][begin + k] = e.out1;
          sums[begin + k] = e.merged;
        }
      }
      if (store_results && mixes) store<N>(merged, group.row * width + column, sums);
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

constexpr int kSharedColumns = 1024;  // of a block whose sums are in shared memory

// The gradients of activations, skip, weight, gate, dmerged, dout1, dn0, dn1 may be null; without `mixes` so
// are x0 and mix. dlane1 may be dlane0, and is then added to it. Partial sums of dattn_scale, dmlp_scale,
// dmix, dweight, dgate: [blocks, width or 2 width]; of drho and dpost: [groups, 2] and [groups, 4]; null
// without them. 16 warps fit on a multiprocessor: a thread has 128 registers, and more if it adds to more than dskip or dx0.
MLG_KERNEL(lane_chain_bwd, scale, eps, mixes, merges, accumulate_dlane0, accumulate_dlane1, accumulate_da,
           accumulate_dm, accumulate_dskip, accumulate_dx0, MLG_ROW_CONSTANTS)
template <typename T, int N>
__global__ void __launch_bounds__(row_block, held* N* row_block <= kSharedColumns && !accumulate_dlane0 &&
                                                     !accumulate_dlane1 && !accumulate_da && !accumulate_dm &&
                                                     accumulate_dskip + accumulate_dx0 <= 1
                                                 ? 512 / row_block
                                                 : 1)
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
  RowGroup group(rows, rows_per_group);
  const long long part = blockIdx.x;
  LaneRow<T, N> of(rho, post);
  LaneSums sums;
  // Each thread's sums over its rows, for each of its columns: of attn_scale, mlp_scale, mix0, mix1, weight, gate. They are in
  // shared memory, and with them k and 1 - k. Wide rows add to the partial sums in memory; their blocks have one group.
  constexpr int kStep = N < 2 ? N : 2;  // columns that a thread computes at a time
  const int count = merges ? 6 : mixes ? 4 : 2, columns_held = held * N * row_block;
  const bool in_shared = slices == 1 && columns_held <= kSharedColumns;
  __shared__ shared_array<float, MLG_CAPACITY(in_shared ? (count + 2 * merges) * columns_held : 1,
                                              8 * kSharedColumns)>
      room;
  const auto partial_of = [&](int sum) {
    return sum == 0   ? partial_attn
           : sum == 1 ? partial_mlp
           : sum < 4  ? partial_mix
           : sum == 4 ? partial_weight
                      : partial_gate;
  };
  const auto at_of = [&](int sum, int column) {
    return sum == 2 || sum == 3 ? part * 2 * width + (sum - 2) * width + column : part * width + column;
  };
  const auto is_kept = [&](int sum) { return in_shared || bool(partial_of(sum)); };
  const auto place = [&](int sum, int i, int n, int thread) {
    return (((sum * held + i) * (N / kStep) + n / kStep) * row_block + thread) * kStep;
  };
  const auto get = [&](int sum, int i, int n, int column, float(&out)[kStep]) {
    if (in_shared) {
      MLG_UNROLL
      for (int k = 0; k < kStep; ++k) out[k] = room[place(sum, i, n, threadIdx.x) + k];
    } else {
      load_floats<kStep>(partial_of(sum), at_of(sum, column), out);
    }
  };
  const auto set = [&](int sum, int i, int n, int column, const float(&values)[kStep]) {
    if (in_shared) {
      MLG_UNROLL
      for (int k = 0; k < kStep; ++k) room[place(sum, i, n, threadIdx.x) + k] = values[k];
    } else {
      store_floats<kStep>(partial_of(sum), at_of(sum, column), values);
    }
  };
  const auto merge_at = [&](int i, int n, int column) {
    if (!in_shared || !merges) return MergeColumns<kStep>(weight, gate, column);
    MergeColumns<kStep> columns(weight, nullptr, column);
    get(6, i, n, column, columns.of_sum);
    get(7, i, n, column, columns.rest);
    return columns;
  };
  // Where `sums` is while others need its registers.
  __shared__ shared_array<float, MLG_CAPACITY(6 * row_block, 6 * 1024)> stored_sums;
  const auto store_sums = [&] {
    MLG_UNROLL
    for (int i = 0; i < 6; ++i) stored_sums[i * row_block + threadIdx.x] = sums.v[i];
  };
  const auto load_sums = [&] {
    MLG_UNROLL
    for (int i = 0; i < 6; ++i) sums.v[i] = stored_sums[i * row_block + threadIdx.x];
  };
  store_sums();
  for_slices(group, [&] {
    for_columns<N>(group, [&](int i, int column) {
      MLG_UNROLL
      for (int n = 0; n < N && in_shared && merges; n += kStep) {
        const MergeColumns<kStep> columns(weight, gate, column + n);
        set(6, i, n, column, columns.of_sum);
        set(7, i, n, column, columns.rest);
      }
      const float zeros[kStep] = {};
      MLG_UNROLL
      for (int sum = 0; sum < count; ++sum) {
        MLG_UNROLL
        for (int n = 0; n < N && is_kept(sum); n += kStep) set(sum, i, n, column + n, zeros);
      }
    });
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
      if (accumulate_dlane0) load_packs_or_zeros(group, dlane0, row, before[0]);
      if (accumulate_dlane1) load_packs_or_zeros(group, dlane1, row, before[1]);
      if (accumulate_da) load_packs_or_zeros(group, da, row, before[2]);
      if (accumulate_dm) load_packs_or_zeros(group, dm, row, before[3]);
      if (accumulate_dskip) load_packs_or_zeros(group, dskip, row, before[4]);
      if (accumulate_dx0) load_packs_or_zeros(group, dx0, row, before[5]);
    };
    if (slices == 1) fill(true);
    NormGradient norm0, norm1;
    if (dn0 || dn1) {
      float squares0 = 0, product0 = 0, squares1 = 0, product1 = 0;
      for_slices(group, [&] {
        if (slices > 1) fill(false);
        for_columns<N>(group, [&](int i, int column) {
          MLG_UNROLL
          for (int first = 0; first < N; first += kStep) {
            const LaneColumns<kStep> columns(attn_scale, mlp_scale, mix, merge_at(i, first, column + first),
                                             column + first);
            MLG_UNROLL
            for (int k = 0; k < kStep; ++k) {
              const int n = first + k;
              const LaneElement e = of.element(i, n, columns, k);
              squares0 += e.y0 * e.y0;
              product0 += e.y0 * of_dn0(i, n);
              if (!mixes) continue;
              squares1 += e.out1 * e.out1;
              product1 += e.out1 * of_dn1(i, n);
            }
          }
        });
      });
      norm0 = NormGradient(group_sum(squares0, scratch), group_sum(product0, scratch), scale, eps);
      if (mixes) norm1 = NormGradient(group_sum(squares1, scratch), group_sum(product1, scratch), scale, eps);
    }
    for_slices(group, [&] {
      if (slices > 1) fill(true);
      load_sums();
      for_columns<N>(group, [&](int i, int column) {
        Words<T, N> results[6];  // dlane0, dlane1, da, dm, dskip, dx0
        MLG_UNROLL
        for (int first = 0; first < N; first += kStep) {
          const LaneColumns<kStep> columns(attn_scale, mlp_scale, mix, merge_at(i, first, column + first),
                                           column + first);
          float added[6][kStep], values[6][kStep];  // to the sums; of the results
          MLG_UNROLL
          for (int k = 0; k < kStep; ++k) {
            const int n = first + k;
            const auto result = [&](int which, float value, bool accumulate) {
              values[which][k] = accumulate ? before[which](i, n) + value : value;
            };
            const LaneElement e = of.element(i, n, columns, k);
            const float g = norm0.factor * of_dn0(i, n) - norm0.along * e.y0;
            float g0 = columns.mix0[k] * g,
                  g1 = columns.mix1[k] * g;  // g1: the other lane's in the mean, x0's in the mix
            if (mixes) {
              added[2][k] = g * e.merged;
              added[3][k] = g * of.x0(i, n);
              result(5, g1, accumulate_dx0);
              g0 += of_dmerged(i, n);
              g1 = of_dout1(i, n) + (norm1.factor * of_dn1(i, n) - norm1.along * e.out1);
            }
            float to_skip = 0;
            if (merges) {
              const float w = columns.merge.w[k];
              added[4][k] = g0 * of.skip(i, n);
              added[5][k] = g0 * (e.out0 - w * of.skip(i, n));
              to_skip = columns.merge.rest[k] * w * g0;
              g0 *= columns.merge.of_sum[k];
            }
            result(4, to_skip, accumulate_dskip);
            sums.add(g0, g1, of.lane0(i, n), of.lane1(i, n), e.attention, e.mlp);
            const float to_attention = of.to_attention(g0, g1), to_mlp = of.to_mlp(g0, g1);
            added[0][k] = to_attention * of.a(i, n);
            added[1][k] = to_mlp * of.m(i, n);
            result(2, columns.attn_scale[k] * to_attention, accumulate_da);
            result(3, columns.mlp_scale[k] * to_mlp, accumulate_dm);
            result(0, g0 * of.rho0, accumulate_dlane0);
            if (accumulate_dlane1 && same(dlane1, dlane0)) {
              values[1][k] = to_float(Narrow<T>::from(values[0][k])) + g1 * of.rho1;
            } else {
              result(1, g1 * of.rho1, accumulate_dlane1);
            }
          }
          MLG_UNROLL
          for (int which = 0; which < (mixes ? 6 : 5); ++which) results[which].set(first, values[which]);
          MLG_UNROLL
          for (int sum = 0; sum < count; ++sum) {
            if (!is_kept(sum)) continue;
            float total[kStep];
            get(sum, i, first, column + first, total);
            MLG_UNROLL
            for (int k = 0; k < kStep; ++k) total[k] += added[sum][k];
            set(sum, i, first, column + first, total);
          }
        }
        const long long at = row * width + column;
        if (dlane0) results[0].store(dlane0, at);
        if (dlane1) results[1].store(dlane1, at);
        if (da) results[2].store(da, at);
        if (dm) results[3].store(dm, at);
        if (dskip) results[4].store(dskip, at);
        if (dx0) results[5].store(dx0, at);
      });
      store_sums();
    });
  }
  // d merged / d weight = (1-k) skip,  d merged / d gate = k (1-k) (out0 - w skip)
  for_slices(group, [&] {
    for_columns<N>(group, [&](int i, int column) {
      MLG_UNROLL
      for (int n = 0; n < N && merges; n += kStep) {
        const MergeColumns<kStep> columns = merge_at(i, n, column + n);
        float total[kStep];
        MLG_UNROLL
        for (int sum = 4; sum < count; ++sum) {
          if (!is_kept(sum)) continue;
          get(sum, i, n, column + n, total);
          MLG_UNROLL
          for (int k = 0; k < kStep; ++k)
            total[k] *= sum == 4 ? columns.rest[k] : columns.of_sum[k] * columns.rest[k];
          set(sum, i, n, column + n, total);
        }
      }
    });
  });
  // The sums of a block's groups, in their order.
  __syncthreads();
  if (in_shared && group.in_block() == 0) {
    for_columns<N>(group, [&](int i, int column) {
      MLG_UNROLL
      for (int sum = 0; sum < count; ++sum) {
        MLG_UNROLL
        for (int n = 0; n < N && partial_of(sum); n += kStep) {
          float total[kStep];
          get(sum, i, n, column + n, total);
          for (int other = 1; other < row_block / row_threads; ++other) {
            MLG_UNROLL
            for (int k = 0; k < kStep; ++k)
              total[k] += room[place(sum, i, n, threadIdx.x + other * row_threads) + k];
          }
          store_floats<kStep>(partial_of(sum), at_of(sum, column + n), total);
        }
      }
    });
  }
  load_sums();
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
