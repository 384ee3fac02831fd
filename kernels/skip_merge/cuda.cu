// skip_merge on x, s [rows, width], weight w [width], gate [width]:  y = k x + (1 - k) w s,  k =
// sigmoid(gate); without gate: y = x + w s
//   dx (+)= k dy,  ds (+)= (1 - k) w dy,  dw += (1 - k) sum(dy s),  dgate += k (1 - k) sum(dy (x - w s))
// (no gate: dx (+)= dy, ds (+)= w dy, dw += sum(dy s)).
//
// A group of threads takes several rows and keeps what belongs to the columns in registers. Determinism: rows
// are independent; sums over rows go through partial sums of fixed pieces of rows (columns.cuh).
#include <mulligan/cuda/column_vectors.cuh>
#include <mulligan/cuda/columns.cuh>
#include <mulligan/cuda/rows.cuh>

MLG_CONST_INT(accumulate_dx)
MLG_CONST_INT(accumulate_ds)

// of_x = k, rest = 1 - k, w = weight, of the thread's columns.
template <int N>
__device__ inline void load_weights(const RowGroup& group, global<const float> weight,
                                    global<const float> gate, RowValues<N>& of_x, RowValues<N>& rest,
                                    RowValues<N>& w) {
  for_columns<N>(group, [&](int i, int column) {
    load<N>(weight, column, w.v[i]);
    load_gate<N>(gate, column, of_x.v[i], rest.v[i]);
  });
}

// gate may be null.
MLG_KERNEL(skip_merge_fwd, MLG_ROW_CONSTANTS)
template <typename T, int N>
__global__ void __launch_bounds__(row_block)
    skip_merge_fwd(global<const T> x, global<const T> s, global<const float> weight, global<const float> gate,
                   global<T> y, long long rows, int rows_per_group) {
  RowGroup group(rows, rows_per_group);
  if (group.row >= rows) return;
  for_slices(group, [&] {
    RowValues<N> of_x, rest, w;
    load_weights<N>(group, weight, gate, of_x, rest, w);
    for (long long row = group.row; row < group.end; ++row) {
      for_columns<N>(group, [&](int i, int column) {
        float a[N], b[N];
        load<N>(x, row * width + column, a);
        load<N>(s, row * width + column, b);
        MLG_UNROLL
        for (int n = 0; n < N; ++n) a[n] = of_x.v[i][n] * a[n] + rest.v[i][n] * w.v[i][n] * b[n];
        store<N>(y, row * width + column, a);
      });
    }
  });
}

// gate, dx, ds may be null; ds may be dx. partial_weight, partial_gate: [blocks, width], or null without
// dweight, dgate.
MLG_KERNEL(skip_merge_bwd, accumulate_dx, accumulate_ds, MLG_ROW_CONSTANTS)
template <typename T, int N>
__global__ void __launch_bounds__(row_block)
    skip_merge_bwd(global<const T> x, global<const T> s, global<const float> weight, global<const float> gate,
                   global<const T> dy, global<T> dx, global<T> ds, global<float> partial_weight,
                   global<float> partial_gate, long long rows, int rows_per_group) {
  __shared__ GroupScratch group_scratch;
  RowGroup group(rows, rows_per_group);
  for_slices(group, [&] {
    RowValues<N> of_x, rest, w, sum_s, sum_x;
    load_weights<N>(group, weight, gate, of_x, rest, w);
    clear<N>(group, sum_s);
    clear<N>(group, sum_x);
    for (long long row = group.row; row < group.end; ++row) {
      RowPacks<T, N> a, b, g, before_x, before_s;
      load_packs(group, x, row, a);
      load_packs(group, s, row, b);
      load_packs(group, dy, row, g);
      if (dx && accumulate_dx) load_packs(group, dx, row, before_x);
      if (ds && accumulate_ds) load_packs(group, ds, row, before_s);
      for_columns<N>(group, [&](int i, int column) {
        float da[N], db[N];
        MLG_UNROLL
        for (int n = 0; n < N; ++n) {
          sum_s.v[i][n] += g(i, n) * b(i, n);
          sum_x.v[i][n] += g(i, n) * (a(i, n) - w.v[i][n] * b(i, n));
          da[n] = of_x.v[i][n] * g(i, n);
          db[n] = rest.v[i][n] * w.v[i][n] * g(i, n);
        }
        if (dx) store_onto(dx, row * width + column, da, before_x, i, accumulate_dx);
        store_onto_after(dx, ds, row * width + column, db, before_s, i, accumulate_ds);
      });
    }
    for_columns<N>(group, [&](int i, int) {
      MLG_UNROLL
      for (int n = 0; n < N; ++n) {
        sum_s.v[i][n] *= rest.v[i][n];
        sum_x.v[i][n] *= of_x.v[i][n] * rest.v[i][n];
      }
    });
    const long long part = blockIdx.x * (long long)(width);
    end_sums(group, partial_weight, part, sum_s, group_scratch);
    end_sums(group, partial_gate, part, sum_x, group_scratch);
  });
}
