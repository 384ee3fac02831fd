#include "optimizers/common/momentum.h"

#include <algorithm>
#include <cmath>

#include "optimizers/common/matrix_shape.h"

namespace mulligan::optimizers {
namespace {

constexpr double kNormFloor = 1e-7;

// Updates one row of the buffer with `scale` times the gradient, writes u into `direction` and returns sum(u^2).
template <typename Buffer, typename Direction>
float momentum_row(float scale, float momentum, bool nesterov, std::int64_t columns,
                   const float* __restrict g, Buffer* __restrict buffer, Direction* __restrict direction) {
  for (std::int64_t j = 0; j < columns; ++j) {
    const float gradient = scale * g[j];
    buffer[j] = Buffer(momentum * static_cast<float>(buffer[j]) + gradient);
    const float buffered = static_cast<float>(buffer[j]);  // as rounded
    direction[j] = Direction(nesterov ? gradient + momentum * buffered : buffered);
  }
  float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t j = 0; j < columns; ++j) {
    sum += static_cast<float>(direction[j]) * static_cast<float>(direction[j]);
  }
  return sum;
}

// sums[r] holds the rows' sum(u^2) and becomes the factor of the row.
void rows_to_factors(float* sums, std::int64_t rows, bool row_normalize, bool normalize) {
  double total = 0.0;
  for (std::int64_t row = 0; row < rows; ++row) {
    const double norm = std::sqrt(static_cast<double>(sums[row]));
    const double factor = row_normalize ? 1.0 / std::max(norm, kNormFloor) : 1.0;
    total += norm * norm * factor * factor;
    sums[row] = static_cast<float>(factor);
  }
  const double matrix_factor = normalize ? 1.0 / (std::sqrt(total) + kNormFloor) : 1.0;
  for (std::int64_t row = 0; row < rows; ++row) {
    sums[row] = static_cast<float>(static_cast<double>(sums[row]) * matrix_factor);
  }
}

}  // namespace

void MatrixMomentum::check(const sdk::CallChecks& call) {
  call.dtype(gradient, {MLG_F32});
  call.rank(gradient, 2, 3);
  call.master_dtype(momentum_buffer);
  call.same_shape(momentum_buffer, gradient);
  call.scalars(scalars, matrix_scalar_count);
  call.master_dtype(direction);
  call.same_shape(direction, gradient);
  call.f32(gradient_scale, {1});
}

std::size_t MatrixMomentum::workspace_bytes(const sdk::CallChecks& call) {
  return static_cast<std::size_t>(MatrixShape::of(call, gradient).all_rows()) * sizeof(float);
}

void MatrixMomentum::run(const sdk::Launch& call) {
  const MatrixShape shape = MatrixShape::of(call, gradient);
  const std::int64_t columns = shape.columns, rows = shape.rows;
  const float momentum = call.data<float>(scalars)[matrix_momentum];
  const bool look_ahead = call.flag(nesterov), rows_to_one = call.flag(row_normalize),
             matrix_to_one = call.flag(normalize);
  float scale = call.has(gradient_scale) ? *call.data<const float>(gradient_scale) : 1.0f;
  if (call.flag(mean)) scale *= 1.0f - momentum;
  float* factors = call.workspace<float>();

  sdk::dispatch_master(call.dtype(momentum_buffer), [&]<typename Buffer>() {
    sdk::dispatch_master(call.dtype(direction), [&]<typename Direction>() {
      Direction* u = call.data<Direction>(direction);
      call.for_each(shape.all_rows(), shape.grain(), [&](std::int64_t row) {
        const std::int64_t at = row * columns;
        factors[row] =
            momentum_row(scale, momentum, look_ahead, columns, call.data<const float>(gradient) + at,
                         call.data<Buffer>(momentum_buffer) + at, u + at);
      });
      if (!rows_to_one && !matrix_to_one) return;
      call.for_each(shape.matrices, 1, [&](std::int64_t matrix) {
        rows_to_factors(factors + matrix * rows, rows, rows_to_one, matrix_to_one);
      });
      call.for_each(shape.all_rows(), shape.grain(), [&](std::int64_t row) {
        Direction* values = u + row * columns;
        const float factor = factors[row];
        for (std::int64_t j = 0; j < columns; ++j) {
          values[j] = Direction(static_cast<float>(values[j]) * factor);
        }
      });
    });
  });
}

}  // namespace mulligan::optimizers
