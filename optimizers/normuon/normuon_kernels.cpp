#include "optimizers/normuon/normuon_kernels.h"

#include <cmath>

#include "optimizers/common/momentum.h"

namespace mulligan::optimizers {
namespace {

// sum(x^2) over each line of rows [begin, end) (lines are rows) or of columns [begin, end).
template <typename T>
void line_squares(const T* x, const MatrixShape& shape, std::int64_t begin, std::int64_t end, double* sums) {
  const bool tall = shape.rows >= shape.columns;
  std::fill(sums + begin, sums + end, 0.0);
  const std::int64_t first_row = tall ? begin : 0, last_row = tall ? end : shape.rows;
  const std::int64_t first = tall ? 0 : begin, last = tall ? shape.columns : end;
  for (std::int64_t row = first_row; row < last_row; ++row) {
    for (std::int64_t j = first; j < last; ++j) {
      const auto value = static_cast<double>(static_cast<float>(x[row * shape.columns + j]));
      sums[tall ? row : j] += value * value;
    }
  }
}

// sums: of direction^2 over the lines of one matrix.
void settle_lines(const double* sums, std::int64_t lines, std::int64_t length, double beta2, double scale,
                  float* second_moment, float* factors) {
  double before = 0, after = 0;
  for (std::int64_t i = 0; i < lines; ++i) {
    const double squares = scale * scale * sums[i];
    const double v =
        beta2 * static_cast<double>(second_moment[i]) + (1 - beta2) * squares / static_cast<double>(length);
    second_moment[i] = static_cast<float>(v);
    before += squares;
    after += squares / std::max(v, 1e-10);
  }
  const double norm = std::sqrt(before) / std::max(std::sqrt(after), 1e-10);
  for (std::int64_t i = 0; i < lines; ++i) {
    factors[i] = static_cast<float>(norm / std::sqrt(std::max(static_cast<double>(second_moment[i]), 1e-10)));
  }
}

void check_lines(const sdk::CallChecks& call, std::uint32_t argument, std::uint32_t direction) {
  const mlg_tensor expected = line_shape(call.tensor(direction));
  const mlg_tensor& t = call.tensor(argument);
  call.dtype(argument, {MLG_F32});
  call.require(t.rank == expected.rank && std::equal(t.shape, t.shape + MLG_MAX_RANK, expected.shape),
               argument, "must have one element per line of direction");
}

}  // namespace

mlg_tensor line_shape(mlg_tensor direction) {
  direction.dtype = MLG_F32;
  const int row_axis = direction.rank - 2, column_axis = direction.rank - 1;
  const bool tall = direction.shape[row_axis] >= direction.shape[column_axis];
  direction.shape[tall ? column_axis : row_axis] = 1;
  return direction;
}

void NormuonFactors::check(const sdk::CallChecks& call) {
  call.master_dtype(direction);
  call.rank(direction, 2, 3);
  check_lines(call, second_moment, direction);
  check_lines(call, factors, direction);
  call.attribute_range(beta2, 0, 1);
}

std::size_t NormuonFactors::workspace_bytes(const sdk::CallChecks& call) {
  return static_cast<std::size_t>(call.size(factors)) * sizeof(double);
}

void NormuonFactors::run(const sdk::Launch& call) {
  const MatrixShape shape = MatrixShape::of(call, direction);
  const std::int64_t lines = std::max(shape.rows, shape.columns),
                     length = std::min(shape.rows, shape.columns);
  double* sums = call.workspace<double>();
  sdk::dispatch_master(call.dtype(direction), [&]<typename T>() {
    constexpr std::int64_t kPiece = 64;
    const std::int64_t pieces = (lines + kPiece - 1) / kPiece;
    call.for_each(shape.matrices * pieces, 1, [&](std::int64_t piece) {
      const std::int64_t matrix = piece / pieces, line = piece % pieces * kPiece;
      line_squares(call.data<const T>(direction) + matrix * shape.elements(), shape, line,
                   std::min(lines, line + kPiece), sums + matrix * lines);
    });
  });
  call.for_each(shape.matrices, 1, [&](std::int64_t matrix) {
    settle_lines(sums + matrix * lines, lines, length, call.attribute(beta2), call.attribute(scale),
                 call.data<float>(second_moment) + matrix * lines,
                 call.data<float>(factors) + matrix * lines);
  });
}

void NormuonApply::check(const sdk::CallChecks& call) {
  call.master_dtype(direction);
  call.rank(direction, 2, 3);
  check_lines(call, factors, direction);
  call.master_dtype(master);
  call.same_shape(master, direction);
  call.scalars(scalars, matrix_scalar_count);
}

void NormuonApply::run(const sdk::Launch& call) {
  const MatrixShape shape = MatrixShape::of(call, direction);
  const float* values = call.data<float>(scalars);
  const double lr = static_cast<double>(values[matrix_lr]) * call.attribute(lr_multiplier);
  const auto decay = static_cast<float>(1.0 - lr * static_cast<double>(values[matrix_weight_decay_factor]) *
                                                  call.attribute(weight_decay));
  const auto step_size = static_cast<float>(lr * call.attribute(scale));
  const bool tall = shape.rows >= shape.columns;
  const float* f = call.data<const float>(factors);
  sdk::dispatch_master(call.dtype(direction), [&]<typename Direction>() {
    sdk::dispatch_master(call.dtype(master), [&]<typename Master>() {
      call.for_each(shape.all_rows(), shape.grain(), [&](std::int64_t row) {
        const Direction* o = call.data<const Direction>(direction) + row * shape.columns;
        Master* p = call.data<Master>(master) + row * shape.columns;
        const float* of_columns = f + row / shape.rows * shape.columns;
        for (std::int64_t j = 0; j < shape.columns; ++j) {
          const float factor = tall ? f[row] : of_columns[j];
          p[j] = Master(static_cast<float>(p[j]) * decay - step_size * (factor * static_cast<float>(o[j])));
        }
      });
    });
  });
}

}  // namespace mulligan::optimizers
