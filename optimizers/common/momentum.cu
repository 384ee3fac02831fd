// The momentum of a matrix optimiser and the direction that is orthogonalised; formulas in momentum.h.
//
// Three passes: rows (buffer, unscaled direction, sum of squares of each row), one block per matrix (the factor
// of each row), rows (direction times factor). The last two are left out where nothing is normalised.
// Determinism: a row is summed by one group of threads, a matrix by one block, in f64; both in a fixed order.
#include <mulligan/cuda/fused_update.cuh>
#include <mulligan/cuda/rows.cuh>

MLG_CONST_INT(nesterov)
MLG_CONST_INT(row_normalize)
MLG_CONST_INT(mean)
MLG_CONST_INT(normalize)

constexpr double kNormFloor = 1e-7;

// row_sums [rows]: sums of the squares of direction as it is stored. scalars: lr, momentum. gradient_scale is
// null where gradients are not `scaled`.
MLG_KERNEL(muon_momentum_rows, nesterov, mean, scaled, MLG_ROW_CONSTANTS)
template <typename Buffer, typename Direction, int N>
__global__ void __launch_bounds__(row_block)
    muon_momentum_rows(global<const float> gradient, global<Buffer> buffer, global<const float> scalars,
                       global<Direction> direction, global<const float> gradient_scale,
                       global<float> row_sums, long long rows) {
  __shared__ shared_array<float, 32> scratch;
  RowGroup group(rows, 1);
  if (group.row >= rows) return;
  const float momentum = scalars[1];
  const float factor = scale_of_gradients(gradient_scale) * (mean ? 1.0f - momentum : 1.0f);
  float sum = 0;
  for_slices(group, [&] {
    for_columns<N>(group, [&](int, int column) {
      const long long at = group.row * width + column;
      float u[N], buffered[N];
      load<N>(gradient, at, u);
      load<N>(buffer, at, buffered);
      MLG_UNROLL
      for (int n = 0; n < N; ++n) {
        u[n] = u[n] * factor;
        buffered[n] = to_float(Narrow<Buffer>::from(momentum * buffered[n] + u[n]));
        u[n] = nesterov ? u[n] + momentum * buffered[n] : buffered[n];
        u[n] = to_float(Narrow<Direction>::from(u[n]));
        sum += u[n] * u[n];
      }
      store<N>(buffer, at, buffered);
      store<N>(direction, at, u);
    });
  });
  sum = group_sum(sum, scratch);
  if (group.thread == 0) row_sums[group.row] = sum;
}

// row_sums [gridDim.x, matrix_rows] become the factors of the rows. One block per matrix.
MLG_KERNEL(muon_row_factors, row_normalize, normalize)
__global__ void muon_row_factors(global<float> row_sums, int matrix_rows) {
  __shared__ shared_array<double, 32> scratch;
  const global<float> sums = row_sums + blockIdx.x * (long long)(matrix_rows);
  const auto row_factor = [](double sum) { return row_normalize ? 1.0 / max(sqrt(sum), kNormFloor) : 1.0; };
  double total = 0;
  for (int row = threadIdx.x; row < matrix_rows; row += blockDim.x) {
    const double sum = sums[row], factor = row_factor(sum);
    total += sum * factor * factor;
  }
  total = block_sum(total, scratch, int(blockDim.x) / 32);
  const double matrix_factor = normalize ? 1.0 / (sqrt(total) + kNormFloor) : 1.0;
  for (int row = threadIdx.x; row < matrix_rows; row += blockDim.x) {
    sums[row] = float(row_factor(sums[row]) * matrix_factor);
  }
}

MLG_KERNEL(muon_scale_rows, MLG_ROW_CONSTANTS)
template <typename Direction, int N>
__global__ void __launch_bounds__(row_block)
    muon_scale_rows(global<Direction> direction, global<const float> factors, long long rows) {
  RowGroup group(rows, 1);
  if (group.row >= rows) return;
  const float factor = factors[group.row];
  for_slices(group, [&] {
    for_columns<N>(group, [&](int, int column) {
      const long long at = group.row * width + column;
      float values[N];
      load<N>(direction, at, values);
      MLG_UNROLL
      for (int n = 0; n < N; ++n) values[n] *= factor;
      store<N>(direction, at, values);
    });
  });
}
