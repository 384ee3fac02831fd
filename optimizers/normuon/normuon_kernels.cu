// What NorMuon does with an orthogonalised update; formulas in normuon_kernels.h.
//
// The factors take two passes: sums over lines (one block per row, or one thread per column), one block per matrix.
// Determinism: a line is summed by one block or thread, a matrix by one block, in f64, in a fixed order.
#include <mulligan/cuda/elements.cuh>

MLG_CONST_INT(matrix_rows)
MLG_CONST_INT(columns)
MLG_CONST_FLOAT(beta2)
MLG_CONST_FLOAT(one_minus_beta2)
MLG_CONST_FLOAT(lr_multiplier)
MLG_CONST_FLOAT(weight_decay)
MLG_CONST_FLOAT(scale)

template <typename P>
__device__ inline double square_at(P p, long long i) {
  float value[1];
  load<1>(p, i, value);
  return double(value[0]) * value[0];
}

// sums [rows of all matrices]. One block per row.
MLG_KERNEL(normuon_row_squares, columns)
template <typename Direction>
__global__ void normuon_row_squares(global<const Direction> direction, global<double> sums) {
  __shared__ shared_array<double, 32> scratch;
  const long long row = blockIdx.x;
  double sum = 0;
  for (int j = threadIdx.x; j < columns; j += blockDim.x) sum += square_at(direction, row * columns + j);
  sum = block_sum(sum, scratch, int(blockDim.x) / 32);
  if (threadIdx.x == 0) sums[row] = sum;
}

// sums [columns of all matrices]: `count`. One thread per column.
MLG_KERNEL(normuon_column_squares, matrix_rows, columns)
template <typename Direction>
__global__ void normuon_column_squares(global<const Direction> direction, global<double> sums,
                                       long long count) {
  const long long i = first_element<1>();
  if (i >= count) return;
  const long long first = i / columns * matrix_rows * columns + i % columns;
  double sum = 0;
  for (int row = 0; row < matrix_rows; ++row) sum += square_at(direction, first + (long long)(row)*columns);
  sums[i] = sum;
}

// One block per matrix.
MLG_KERNEL(normuon_settle, matrix_rows, columns, beta2, one_minus_beta2, scale)
__global__ void normuon_settle(global<double> sums, global<float> second_moment, global<float> factors) {
  __shared__ shared_array<double, 32> scratch;
  const int lines = max(int(matrix_rows), int(columns)), length = min(int(matrix_rows), int(columns));
  const long long first = blockIdx.x * (long long)(lines);
  double before = 0, after = 0;
  for (int i = threadIdx.x; i < lines; i += blockDim.x) {
    const double squares = double(scale) * scale * sums[first + i];
    const double v = double(beta2) * second_moment[first + i] + double(one_minus_beta2) * squares / length;
    second_moment[first + i] = float(v);
    before += squares;
    after += squares / max(v, 1e-10);
  }
  before = block_sum(before, scratch, int(blockDim.x) / 32);
  after = block_sum(after, scratch, int(blockDim.x) / 32);
  const double norm = sqrt(before) / max(sqrt(after), 1e-10);
  for (int i = threadIdx.x; i < lines; i += blockDim.x) {
    factors[first + i] = float(norm / sqrt(max(double(second_moment[first + i]), 1e-10)));
  }
}

MLG_KERNEL(normuon_apply, matrix_rows, columns, lr_multiplier, weight_decay, scale)
template <typename Direction, typename Master>
__global__ void normuon_apply(global<const Direction> direction, global<const float> factors,
                              global<Master> master, global<const float> scalars, long long count) {
  const long long i = first_element<1>();
  if (i >= count) return;
  const long long row = i / columns;
  const long long line = matrix_rows >= columns ? row : row / matrix_rows * columns + i % columns;
  const float rate = scalars[0] * lr_multiplier;
  float o[1], p[1];
  load<1>(direction, i, o);
  load<1>(master, i, p);
  p[0] = p[0] * (1.0f - rate * scalars[2] * weight_decay) - rate * scale * (factors[line] * o[0]);
  store<1>(master, i, p);
}
