// skip_merge on x, s [rows, width], weight w [width], gate [width]:  y = k x + (1 - k) w s,  k =
// sigmoid(gate); without gate: y = x + w s
//   dx (+)= k dy,  ds (+)= (1 - k) w dy,  dw += (1 - k) sum(dy s),  dgate += k (1 - k) sum(dy (x - w s))
// (no gate: dx (+)= dy, ds (+)= w dy, dw += sum(dy s)).
//
// A group of threads takes several rows and keeps what belongs to the columns in registers. Determinism: rows
// are independent; sums over rows go through partial sums of fixed pieces of rows (columns.cuh).
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
    load_floats<N>(weight, column, w.v[i]);
    MLG_UNROLL
    for (int n = 0; n < N; ++n) of_x.v[i][n] = rest.v[i][n] = 1;
    if (!gate) return;
    float g[N];
    load_floats<N>(gate, column, g);
    MLG_UNROLL
    for (int n = 0; n < N; ++n) {
      of_x.v[i][n] = 1.0f / (1.0f + __expf(-g[n]));
      rest.v[i][n] = 1.0f / (1.0f + __expf(g[n]));
    }
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

// gate, dx, ds may be null. partial_weight, partial_gate: [groups, width], or null without dweight, dgate.
MLG_KERNEL(skip_merge_bwd, accumulate_dx, accumulate_ds, MLG_ROW_CONSTANTS)
template <typename T, int N>
__global__ void __launch_bounds__(row_block)
    skip_merge_bwd(global<const T> x, global<const T> s, global<const float> weight, global<const float> gate,
                   global<const T> dy, global<T> dx, global<T> ds, global<float> partial_weight,
                   global<float> partial_gate, long long rows, int rows_per_group) {
  RowGroup group(rows, rows_per_group);
  if (group.row >= rows) return;
  for_slices(group, [&] {
    RowValues<N> of_x, rest, w, sum_s, sum_x;
    load_weights<N>(group, weight, gate, of_x, rest, w);
    clear<N>(group, sum_s);
    clear<N>(group, sum_x);
    for (long long row = group.row; row < group.end; ++row) {
      for_columns<N>(group, [&](int i, int column) {
        float a[N], b[N], g[N], da[N], db[N];
        load<N>(x, row * width + column, a);
        load<N>(s, row * width + column, b);
        load<N>(dy, row * width + column, g);
        MLG_UNROLL
        for (int n = 0; n < N; ++n) {
          sum_s.v[i][n] += g[n] * b[n];
          sum_x.v[i][n] += g[n] * (a[n] - w.v[i][n] * b[n]);
          da[n] = of_x.v[i][n] * g[n];
          db[n] = rest.v[i][n] * w.v[i][n] * g[n];
        }
        if (dx) store<N>(dx, row * width + column, da, accumulate_dx);
        if (ds) store<N>(ds, row * width + column, db, accumulate_ds);
      });
    }
    for_columns<N>(group, [&](int i, int) {
      MLG_UNROLL
      for (int n = 0; n < N; ++n) {
        sum_s.v[i][n] *= rest.v[i][n];
        sum_x.v[i][n] *= of_x.v[i][n] * rest.v[i][n];
      }
    });
    if (partial_weight) store_columns<N>(group, partial_weight, group.index() * width, sum_s);
    if (partial_gate) store_columns<N>(group, partial_gate, group.index() * width, sum_x);
  });
}
