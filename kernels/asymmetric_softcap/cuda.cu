// asymmetric_softcap on z [rows, width]:  y = c tanh(z / c), c = positive where z > 0, else negative
//   dz (+)= dy (1 - t^2), t = tanh(z / c)
//   dc += sum over the elements with that cap of dy (t - (z / c) (1 - t^2)), in f64, because it sums a whole matrix
// With e = exp(-2 |z| / c) the slope 1 - t^2 is 4 e / (1 + e)^2.
//
// Determinism: elements are independent; sums go through partial sums of each group's rows.
#include <mulligan/cuda/elements.cuh>
#include <mulligan/cuda/rows.cuh>

MLG_CONST_INT(accumulate_dz)

using Scratch = shared_array<double, 32>;

// t - u (1 - t^2) at u with t = tanh(u): the derivative of c tanh(z / c) by c. Up to |u| = 1 both terms nearly cancel (2/3 u^3
// is left of u). There it is computed as (sinh(2u) - 2u) / (2 cosh(u)^2) by the series of sinh, whose terms have one sign.
__device__ inline float softcap_growth(float u, float slope) {
  const float w = u + u, square = w * w;
  if (square >= 4.0f) return tanhf(u) - (slope > 0 ? u * slope : 0.0f);
  float series = 1.0f + square * (1.0f / 210);
  series = 1.0f + square * (1.0f / 156) * series;
  series = 1.0f + square * (1.0f / 110) * series;
  series = 1.0f + square * (1.0f / 72) * series;
  series = 1.0f + square * (1.0f / 42) * series;
  series = 1.0f + square * (1.0f / 20) * series;
  return 0.5f * slope * (w * square * (1.0f / 6)) * series;
}

// value at partial[index, 2].
__device__ inline void store_wide(global<float> partial, long long index, double value) {
  if (!partial) return;
  const float whole = float(value);
  partial[2 * index] = whole;
  partial[2 * index + 1] = float(value - double(whole));
}

MLG_KERNEL(asymmetric_softcap_fwd)
template <typename T, int N>
__global__ void asymmetric_softcap_fwd(global<const T> z, global<const float> positive,
                                       global<const float> negative, global<T> y, long long count) {
  const long long i = first_element<N>();
  if (i >= count) return;
  const float above = positive[0], below = negative[0];
  float values[N];
  load<N>(z, i, values);
  MLG_UNROLL
  for (int n = 0; n < N; ++n) {
    const float cap = values[n] > 0 ? above : below;
    values[n] = cap * tanhf(values[n] / cap);
  }
  store<N>(y, i, values);
}

// dz may be null. partial_positive and partial_negative are [groups, 2], or null without dpositive and dnegative. They hold
// sums in f64 as two floats; the second is the remainder of the first.
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
  double of_above = 0, of_below = 0;
  for (long long row = group.row; row < group.end; ++row) {
    for_slices(group, [&] {
      for_columns<N>(group, [&](int, int column) {
        float values[N], d[N];
        load<N>(z, row * width + column, values);
        load<N>(dy, row * width + column, d);
        float above_here = 0, below_here = 0;
        MLG_UNROLL
        for (int n = 0; n < N; ++n) {
          const bool is_above = values[n] > 0;
          const float ratio = values[n] / (is_above ? above : below), e = __expf(-2.0f * fabsf(ratio));
          const float slope = __fdividef(4.0f * e, (1.0f + e) * (1.0f + e));
          const float growth = d[n] * softcap_growth(ratio, slope);
          above_here += is_above ? growth : 0.0f;
          below_here += is_above ? 0.0f : growth;
          d[n] *= slope;
        }
        of_above += double(above_here);
        of_below += double(below_here);
        if (dz) store<N>(dz, row * width + column, d, accumulate_dz);
      });
    });
  }
  of_above = block_sum(of_above, scratch, row_threads / 32);
  of_below = block_sum(of_below, scratch, row_threads / 32);
  if (group.thread != 0) return;
  store_wide(partial_positive, group.index(), of_above);
  store_wide(partial_negative, group.index(), of_below);
}

// out += the sum over partial [parts, 2]. By one warp.
MLG_KERNEL(asymmetric_softcap_add)
__global__ void asymmetric_softcap_add(global<const float> partial, global<float> out, int parts) {
  double sum = 0;
  for (int part = threadIdx.x; part < parts; part += 32)
    sum += double(partial[2 * part]) + double(partial[2 * part + 1]);
  sum = warp_sum(sum);
  if (threadIdx.x == 0) out[0] = float(double(out[0]) + sum);
}
