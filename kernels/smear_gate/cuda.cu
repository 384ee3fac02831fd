// smear_gate on x [rows, width], tokens [rows], weight w [1, window], lambda [1]. Token t is open where t mod
// row_length is not 0 and tokens[t] is not document_start. With s_t = sigmoid(<w, x_t[:window]>):
//   y_t = x_t + lambda s_t x_{t-1}   (t open; else y_t = x_t)
// Backward, with c_t = <dy_t, x_{t-1}> of an open t, else 0:
//   dx_t (+)= dy_t + lambda s_{t+1} dy_{t+1} (t + 1 open), and on the window lambda s_t (1 - s_t) c_t w
//   dw += sum lambda s_t (1 - s_t) c_t x_t[:window],   dlambda += sum s_t c_t
//
// A group of threads takes several rows. Determinism: rows are independent; sums over rows go through partial
// sums of each group's rows (columns.cuh).
#include <mulligan/cuda/columns.cuh>
#include <mulligan/cuda/rows.cuh>

MLG_CONST_INT(window)
MLG_CONST_INT(row_length)
MLG_CONST_INT(document_start)  // -1: none
MLG_CONST_INT(accumulate_dx)

using Scratch = shared_array<float, 32>;

// Whether row t takes in the one before it.
__device__ inline bool is_open(global<const int> tokens, long long t, long long rows) {
  return t < rows && t % row_length != 0 && tokens[t] != document_start;
}

// The logit of s of row t, in all threads of the group, which must all call it.
template <int N, typename P>
__device__ inline float logit_of(RowGroup group, P x, P weight, long long t, Scratch& scratch) {
  float sum = 0;
  for_slices(group, [&] {
    for_columns<N>(group, [&](int, int column) {
      if (column >= window) return;
      float values[N];
      load<N>(x, t * width + column, values);
      MLG_UNROLL
      for (int n = 0; n < N; ++n) {
        if (column + n < window) sum += values[n] * to_float(weight[column + n]);
      }
    });
  });
  return group_sum(sum, scratch);
}

__device__ inline float sigmoid(float logit) {
  return __fdividef(1.0f, 1.0f + __expf(-logit));
}

MLG_KERNEL(smear_gate_fwd, window, row_length, document_start, MLG_ROW_CONSTANTS)
template <typename T, int N>
__global__ void __launch_bounds__(row_block)
    smear_gate_fwd(global<const T> x, global<const int> tokens, global<const T> weight,
                   global<const float> lambda, global<T> y, long long rows, int rows_per_group) {
  __shared__ Scratch scratch;
  RowGroup group(rows, rows_per_group);
  for (long long row = group.row; row < group.end; ++row) {
    const bool open = is_open(tokens, row, rows);
    const float share = open ? lambda[0] * sigmoid(logit_of<N>(group, x, weight, row, scratch)) : 0.0f;
    for_slices(group, [&] {
      for_columns<N>(group, [&](int, int column) {
        float own[N], before[N];
        load<N>(x, row * width + column, own);
        if (open) {
          load<N>(x, (row - 1) * width + column, before);
          MLG_UNROLL
          for (int n = 0; n < N; ++n) own[n] += share * before[n];
        }
        store<N>(y, row * width + column, own);
      });
    });
  }
}

// The sum of dy_t x_{t-1} over the row, in all threads of the group.
template <int N, typename P>
__device__ inline float along_before(RowGroup group, P x, P dy, long long t, Scratch& scratch) {
  float sum = 0;
  for_slices(group, [&] {
    for_columns<N>(group, [&](int, int column) {
      float before[N], gradient[N];
      load<N>(x, (t - 1) * width + column, before);
      load<N>(dy, t * width + column, gradient);
      MLG_UNROLL
      for (int n = 0; n < N; ++n) sum += before[n] * gradient[n];
    });
  });
  return group_sum(sum, scratch);
}

// dx may be null. partial_weight [groups, window], partial_lambda [groups], or null without dweight, dlambda.
MLG_KERNEL(smear_gate_bwd, window, row_length, document_start, accumulate_dx, MLG_ROW_CONSTANTS)
template <typename T, int N>
__global__ void __launch_bounds__(row_block)
    smear_gate_bwd(global<const T> x, global<const int> tokens, global<const T> weight,
                   global<const float> lambda, global<const T> dy, global<T> dx, global<float> partial_weight,
                   global<float> partial_lambda, long long rows, int rows_per_group) {
  __shared__ Scratch scratch;
  RowGroup group(rows, rows_per_group);
  if (group.row >= group.end) return;
  for_slices(group, [&] {
    RowValues<N> of_weight;
    clear<N>(group, of_weight);
    float of_lambda = 0;
    bool open = is_open(tokens, group.row, rows);
    float logit = open ? logit_of<N>(group, x, weight, group.row, scratch) : 0.0f;
    float gate = open ? sigmoid(logit) : 0.0f;
    for (long long row = group.row; row < group.end; ++row) {
      const float c = open ? along_before<N>(group, x, dy, row, scratch) : 0.0f;
      const float slope = lambda[0] * gate * sigmoid(-logit) * c;  // an open gate leaves no digits of 1 - s
      of_lambda += gate * c;
      open = is_open(tokens, row + 1, rows);
      logit = open ? logit_of<N>(group, x, weight, row + 1, scratch) : 0.0f;
      gate = open ? sigmoid(logit) : 0.0f;
      const float next = lambda[0] * gate;
      for_columns<N>(group, [&](int i, int column) {
        float d[N];
        load<N>(dy, row * width + column, d);
        if (open) {
          float after[N];
          load<N>(dy, (row + 1) * width + column, after);
          MLG_UNROLL
          for (int n = 0; n < N; ++n) d[n] += next * after[n];
        }
        if (column < window) {
          float own[N];
          load<N>(x, row * width + column, own);
          MLG_UNROLL
          for (int n = 0; n < N; ++n) {
            if (column + n >= window) continue;
            of_weight.v[i][n] += slope * own[n];
            d[n] += slope * to_float(weight[column + n]);
          }
        }
        if (dx) store<N>(dx, row * width + column, d, accumulate_dx);
      });
    }
    for_columns<N>(group, [&](int i, int column) {
      MLG_UNROLL
      for (int n = 0; n < N; ++n) {
        if (partial_weight && column + n < window)
          partial_weight[group.index() * window + column + n] = of_weight.v[i][n];
      }
    });
    if (partial_lambda && group.slice == 0 && group.thread == 0) partial_lambda[group.index()] = of_lambda;
  });
}
