#include "optimizers/common/schatten.h"

#include <algorithm>
#include <cmath>

#include "optimizers/common/matrix_shape.h"
#include "optimizers/common/named_kernel.h"
#include "optimizers/common/newton_schulz.h"

namespace mulligan::optimizers {

void GramNorm::check(const sdk::CallChecks& call) {
  call.dtype(gram, {MLG_F32});
  call.rank(gram, 2, 3);
  const MatrixShape shape = MatrixShape::of(call, gram);
  call.require(shape.rows == shape.columns, gram, "must be square");
  call.f32(norm, {shape.matrices});
}

std::size_t GramNorm::workspace_bytes(const sdk::CallChecks& call) {
  return static_cast<std::size_t>(MatrixShape::of(call, gram).all_rows()) * sizeof(double);
}

void GramNorm::run(const sdk::Launch& call) {
  const MatrixShape shape = MatrixShape::of(call, gram);
  double* sums = call.workspace<double>();
  call.for_each(shape.all_rows(), shape.grain(), [&](std::int64_t row) {
    const float* values = call.data<const float>(gram) + row * shape.columns;
    double sum = 0.0;
    for (std::int64_t j = 0; j < shape.columns; ++j) {
      const auto value = static_cast<double>(values[j]);
      sum += value * value;
    }
    sums[row] = sum;
  });
  for (std::int64_t matrix = 0; matrix < shape.matrices; ++matrix) {
    double sum = 0.0;
    for (std::int64_t row = 0; row < shape.rows; ++row) sum += sums[matrix * shape.rows + row];
    call.data<float>(norm)[matrix] = static_cast<float>(std::sqrt(std::sqrt(sum)));
  }
}

void DivideByNorm::check(const sdk::CallChecks& call) {
  call.master_dtype(x);
  call.rank(x, 2, 3);
  call.f32(norm, {MatrixShape::of(call, x).matrices});
  call.master_dtype(y);
  call.same_shape(y, x);
  call.attribute_range(floor, 0, 1e30);
}

void DivideByNorm::run(const sdk::Launch& call) {
  const MatrixShape shape = MatrixShape::of(call, x);
  const auto least = call.number(floor);
  sdk::dispatch_master(call.dtype(x), [&]<typename X>() {
    sdk::dispatch_master(call.dtype(y), [&]<typename Y>() {
      call.for_each(shape.all_rows(), shape.grain(), [&](std::int64_t row) {
        const float divisor = std::max(call.data<const float>(norm)[row / shape.rows], least);
        const X* from = call.data<const X>(x) + row * shape.columns;
        Y* to = call.data<Y>(y) + row * shape.columns;
        for (std::int64_t j = 0; j < shape.columns; ++j) to[j] = Y(static_cast<float>(from[j]) / divisor);
      });
    });
  });
}

sdk::Value record_schatten4(sdk::Recorder& recorder, const std::string& optimizer, sdk::Value x) {
  const mlg_tensor shape = recorder.describe(x);
  mlg_tensor square = sdk::with_dtype(shape, MLG_F32);
  std::int64_t &rows = square.shape[shape.rank - 2], &columns = square.shape[shape.rank - 1];
  const bool tall = rows > columns;
  rows = columns = std::min(rows, columns);
  const sdk::Value gram = recorder.scratch(square);
  record_symmetric(recorder, x, tall, x, !tall, gram, 1.0, 0.0);
  const sdk::Value norm = recorder.scratch(sdk::shape(MLG_F32, {MatrixShape::of(shape).matrices}));
  launch_named<GramNorm>(recorder, optimizer, {gram, norm});
  return norm;
}

}  // namespace mulligan::optimizers
