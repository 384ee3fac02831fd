// concat_rows: y is the matrices a, b, c and d one below the other; from elements `first` (of a: 0) up to `end`
// on, all others zero. Backward: da += what dy has in the place of a, and so on; da ... are f32.
//
// Determinism: elements are independent.
#include <mulligan/cuda/elements.cuh>

// b, c and d may be null, their parts are empty then. Parts begin and end at multiples of N.
MLG_KERNEL(concat_rows_fwd)
template <typename T, int N>
__global__ void concat_rows_fwd(global<const T> a, global<const T> b, global<const T> c, global<const T> d,
                                global<T> y, long long end_a, long long first_b, long long end_b,
                                long long first_c, long long end_c, long long first_d, long long end_d,
                                long long count) {
  const long long i = first_element<N>();
  if (i >= count) return;
  float values[N] = {};
  if (i < end_a) {
    load<N>(a, i, values);
  } else if (i >= first_b && i < end_b) {
    load<N>(b, i - first_b, values);
  } else if (i >= first_c && i < end_c) {
    load<N>(c, i - first_c, values);
  } else if (i >= first_d && i < end_d) {
    load<N>(d, i - first_d, values);
  }
  store<N>(y, i, values);
}

template <typename T, int N>
__device__ inline void add_part(global<const T> dy, global<float> gradient, long long i, long long first) {
  float values[N];
  load_elements<N>(dy, i, values);
  store_elements<N>(gradient, i - first, values, true);
}

// Gradients may be null, their parts are empty then.
MLG_KERNEL(concat_rows_bwd)
template <typename T, int N>
__global__ void concat_rows_bwd(global<const T> dy, global<float> da, global<float> db, global<float> dc,
                                global<float> dd, long long end_a, long long first_b, long long end_b,
                                long long first_c, long long end_c, long long first_d, long long end_d,
                                long long count) {
  const long long i = first_element<N>();
  if (i >= count) return;
  if (i < end_a) {
    add_part<T, N>(dy, da, i, 0);
  } else if (i >= first_b && i < end_b) {
    add_part<T, N>(dy, db, i, first_b);
  } else if (i >= first_c && i < end_c) {
    add_part<T, N>(dy, dc, i, first_c);
  } else if (i >= first_d && i < end_d) {
    add_part<T, N>(dy, dd, i, first_d);
  }
}
