#include "optimizers/muon/newton_schulz.h"

#include <algorithm>
#include <utility>

namespace mulligan::optimizers {

void record_matmul(sdk::Recorder& recorder, sdk::Value a, bool transpose_a, sdk::Value b, bool transpose_b,
                   sdk::Value c, double alpha, double beta) {
  recorder.launch(
      "matmul", {a, b, c},
      {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}, {"alpha", alpha}, {"beta", beta}});
}

void record_last_product(sdk::Recorder& recorder, sdk::Value x, sdk::Value factor, bool tall, sdk::Value next,
                         double a) {
  if (tall) return record_matmul(recorder, x, false, factor, true, next, 1.0, a);
  record_matmul(recorder, factor, false, x, false, next, 1.0, a);
}

sdk::Value record_newton_schulz(sdk::Recorder& recorder, sdk::Value x, std::span<const Quintic> polynomials,
                                int iterations) {
  const mlg_tensor shape = recorder.describe(x);
  const int row_axis = shape.rank - 2, column_axis = shape.rank - 1;
  const bool tall = shape.shape[row_axis] > shape.shape[column_axis];
  mlg_tensor square = shape;
  square.shape[row_axis] = square.shape[column_axis] =
      std::min(shape.shape[row_axis], shape.shape[column_axis]);

  sdk::Value next = recorder.scratch(shape);
  const sdk::Value gram = recorder.scratch(square), factor = recorder.scratch(square);
  for (int iteration = 0; iteration < iterations; ++iteration) {
    const Quintic& q = polynomials[std::min<std::size_t>(iteration, polynomials.size() - 1)];
    record_matmul(recorder, x, tall, x, !tall, gram, 1.0, 0.0);
    // The products accumulate into a copy of the term that beta scales: one rounding instead of one per term,
    // which is what a bf16 iteration lives on, for a copy that costs little beside the product.
    recorder.launch("cast", {gram, factor});
    record_matmul(recorder, gram, false, gram, false, factor, q.c, q.b);
    recorder.launch("cast", {x, next});
    record_last_product(recorder, x, factor, tall, next, q.a);
    std::swap(x, next);
  }
  return x;
}

}  // namespace mulligan::optimizers
