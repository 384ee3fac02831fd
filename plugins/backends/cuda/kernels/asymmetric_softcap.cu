// asymmetric_softcap on z [rows, width]:  y = c tanh(z / c), c = positive where z > 0, else negative
//   dz (+)= dy (1 - t^2), t = tanh(z / c)
//   dc += sum over the elements of that cap of dy (t - (z / c) (1 - t^2))
// With e = exp(-2 |z| / c) the slope 1 - t^2 is 4 e / (1 + e)^2.
//
// Determinism: elements are independent; sums go through partial sums of each group's rows (columns.cuh).
#include <mulligan/cuda/columns.cuh>
#include <mulligan/cuda/elements.cuh>
#include <mulligan/cuda/rows.cuh>

MLG_CONST_INT(accumulate_dz)

using Scratch = shared_array<float, 32>;

MLG_KERNEL(asymmetric_softcap_fwd)
template <typename T, int N>
__global__ void asymmetric_softcap_fwd(global<const T> z, global<const float> positive,
                                       global<const float> negative, global<T> y, long long count) {
  const long long i = first_element<N>();
  if (i >= count) return;
  const float above = positive[0], below = negative[0];
  float values[N];
  load_elements<N>(z, i, values);
  MLG_UNROLL
  for (int n = 0; n < N; ++n) {
    const float cap = values[n] > 0 ? above : below;
    values[n] = cap * tanhf(values[n] / cap);
  }
  store_elements<N>(y, i, values);
}

// dz may be null. partial_positive, partial_negative [groups], or null without dpositive, dnegative.
MLG_KERNEL(asymmetric_softcap_bwd, accumulate_dz, MLG_ROW_CONSTANTS)
template <typename T, int N>
__global__ void __launch_bounds__(row_block)
    asymmetric_softcap_bwd(global<const T> z, global<const float> positive, global<const float> negative,
                           global<const T> dy, global<T> dz, global<float> partial_positive,
                           global<float> partial_negative, long long rows, int rows_per_group) {
  __shared__ Scratch scratch;
  const float above = positive[0], below = negative[0];
  RowGroup group(rows, rows_per_group);
  if (group.row >= group.end) return;
  float of_above = 0, of_below = 0;
  for (long long row = group.row; row < group.end; ++row) {
    for_slices(group, [&] {
      for_columns<N>(group, [&](int, int column) {
        float values[N], d[N];
        load<N>(z, row * width + column, values);
        load<N>(dy, row * width + column, d);
        MLG_UNROLL
        for (int n = 0; n < N; ++n) {
          const bool is_above = values[n] > 0;
          const float ratio = values[n] / (is_above ? above : below), e = __expf(-2.0f * fabsf(ratio));
          const float slope = __fdividef(4.0f * e, (1.0f + e) * (1.0f + e));
          const float growth = d[n] * (tanhf(ratio) - (slope > 0 ? ratio * slope : 0.0f));
          of_above += is_above ? growth : 0.0f;
          of_below += is_above ? 0.0f : growth;
          d[n] *= slope;
        }
        if (dz) store<N>(dz, row * width + column, d, accumulate_dz);
      });
    });
  }
  of_above = group_sum(of_above, scratch);
  of_below = group_sum(of_below, scratch);
  if (group.thread != 0) return;
  if (partial_positive) partial_positive[group.index()] = of_above;
  if (partial_negative) partial_negative[group.index()] = of_below;
}
