// concat_rows: y [rows, columns] is the matrices a, b, c and d one below the other; from rows `first` (of a:
// 0) up to `end` on; a matrix may have fewer columns; all that no matrix gives is zero. Backward: da += what
// dy has in the place of a, and so on; da ... are f32.
//
// Determinism: elements are independent.
#include <mulligan/cuda/elements.cuh>

MLG_CONST_INT(columns)  // columns of y
MLG_CONST_INT(width_a)  // of a, and so on; of an absent one 0
MLG_CONST_INT(width_b)
MLG_CONST_INT(width_c)
MLG_CONST_INT(width_d)

// values = the N elements from `column` on of a row of `part_width` elements; zeros past its end.
template <int N, typename P>
__device__ inline void load_part(P part, long long row, int column, int part_width, float (&values)[N]) {
  if (part_width == columns) return load<N>(part, row * part_width + column, values);
  MLG_UNROLL
  for (int n = 0; n < N; ++n) {
    if (column + n < part_width) values[n] = to_float(part[row * part_width + column + n]);
  }
}

// b, c and d may be null, their parts are empty then.
MLG_KERNEL(concat_rows_fwd, columns, width_a, width_b, width_c, width_d)
template <typename T, int N>
__global__ void concat_rows_fwd(global<const T> a, global<const T> b, global<const T> c, global<const T> d,
                                global<T> y, long long end_a, long long first_b, long long end_b,
                                long long first_c, long long end_c, long long first_d, long long end_d,
                                long long count) {
  const long long i = first_element<N>();
  if (i >= count) return;
  const long long row = i / columns;
  const int column = int(i - row * columns);
  float values[N] = {};
  if (row < end_a) {
    load_part<N>(a, row, column, width_a, values);
  } else if (row >= first_b && row < end_b) {
    load_part<N>(b, row - first_b, column, width_b, values);
  } else if (row >= first_c && row < end_c) {
    load_part<N>(c, row - first_c, column, width_c, values);
  } else if (row >= first_d && row < end_d) {
    load_part<N>(d, row - first_d, column, width_d, values);
  }
  store<N>(y, i, values);
}

template <typename T, int N>
__device__ inline void add_part(global<const T> dy, long long i, global<float> gradient, long long row,
                                int column, int part_width) {
  float values[N];
  load<N>(dy, i, values);
  if (part_width == columns) {
    store<N>(gradient, row * part_width + column, values, true);
    return;
  }
  MLG_UNROLL
  for (int n = 0; n < N; ++n) {
    const long long at = row * part_width + column + n;
    if (column + n < part_width) gradient[at] = gradient[at] + values[n];
  }
}

// Gradients may be null, their parts are empty then.
MLG_KERNEL(concat_rows_bwd, columns, width_a, width_b, width_c, width_d)
template <typename T, int N>
__global__ void concat_rows_bwd(global<const T> dy, global<float> da, global<float> db, global<float> dc,
                                global<float> dd, long long end_a, long long first_b, long long end_b,
                                long long first_c, long long end_c, long long first_d, long long end_d,
                                long long count) {
  const long long i = first_element<N>();
  if (i >= count) return;
  const long long row = i / columns;
  const int column = int(i - row * columns);
  if (row < end_a) {
    add_part<T, N>(dy, i, da, row, column, width_a);
  } else if (row >= first_b && row < end_b) {
    add_part<T, N>(dy, i, db, row - first_b, column, width_b);
  } else if (row >= first_c && row < end_c) {
    add_part<T, N>(dy, i, dc, row - first_c, column, width_c);
  } else if (row >= first_d && row < end_d) {
    add_part<T, N>(dy, i, dd, row - first_d, column, width_d);
  }
}
