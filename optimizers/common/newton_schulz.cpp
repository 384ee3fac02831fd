#include "optimizers/common/newton_schulz.h"

#include <algorithm>
#include <vector>

namespace mulligan::optimizers {
namespace {

void launch_matmul(sdk::Recorder& recorder, const char* kernel, sdk::Value a, bool transpose_a, sdk::Value b,
                   bool transpose_b, sdk::Value c, double alpha, double beta) {
  recorder.launch(
      kernel, {a, b, c},
      {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}, {"alpha", alpha}, {"beta", beta}});
}

// A copy of `term`. Matmuls accumulate into a copy of the term that beta scales. This rounds once and not once per term, which the bf16
// iteration needs. The copy costs little compared with the matmul.
sdk::Value copy_of(sdk::Recorder& recorder, sdk::Value term) {
  const sdk::Value copy = recorder.scratch(recorder.describe(term));
  recorder.launch("cast", {term, copy});
  return copy;
}

// alpha a b + beta term, all symmetric.
sdk::Value symmetric_plus(sdk::Recorder& recorder, sdk::Value a, sdk::Value b, double alpha, sdk::Value term,
                          double beta) {
  const sdk::Value sum = copy_of(recorder, term);
  record_symmetric(recorder, a, false, b, false, sum, alpha, beta);
  return sum;
}

// All iterations of `polynomials` on x. They share x's Gram matrix: with A_1 = X X^T, G_i = b_i A_i + c_i
// A_i^2 and F_i = a_i I + G_i, iteration i is X <- F_i X. All these are polynomials in A_1 and commute, hence
//   A_{i+1} = F_i A_i F_i
//   F_i ... F_1 = alpha I + P with P <- a_i P + alpha G_i + G_i P, alpha <- a_i alpha
// need no X and are symmetric. The identity stays apart: bf16 has no digits to spare for it.
sdk::Value record_iterations(sdk::Recorder& recorder, sdk::Value x, std::span<const Quintic> polynomials) {
  const mlg_tensor shape = recorder.describe(x);
  const int row_axis = shape.rank - 2, column_axis = shape.rank - 1;
  const bool tall = shape.shape[row_axis] > shape.shape[column_axis];
  mlg_tensor square = shape;
  square.shape[row_axis] = square.shape[column_axis] =
      std::min(shape.shape[row_axis], shape.shape[column_axis]);

  sdk::Value gram = recorder.scratch(square), p = sdk::absent;
  record_symmetric(recorder, x, tall, x, !tall, gram, 1.0, 0.0);
  double alpha = 1.0;
  for (std::size_t i = 0; i < polynomials.size(); ++i) {
    const Quintic& q = polynomials[i];
    const sdk::Value g = symmetric_plus(recorder, gram, gram, q.c, gram, q.b);
    if (i + 1 < polynomials.size()) {
      const sdk::Value fa = symmetric_plus(recorder, gram, g, 1.0, gram, q.a);
      gram = symmetric_plus(recorder, g, fa, 1.0, fa, q.a);
    }
    if (i == 0) {
      p = g;
    } else {
      const sdk::Value next = recorder.scratch(square);
      recorder.launch("axpby", {p, g, next}, {{"alpha", q.a}, {"beta", alpha}, {"accumulate_y", 0}});
      record_symmetric(recorder, g, false, p, false, next, 1.0, 1.0);
      p = next;
    }
    alpha *= q.a;
  }
  const sdk::Value next = copy_of(recorder, x);
  record_last_matmul(recorder, x, p, tall, next, alpha);
  return next;
}

// How many iterations share a Gram matrix (newton_schulz.h).
int shared_iterations(const mlg_tensor& shape, NewtonSchulzForm form) {
  const std::int64_t rows = shape.shape[shape.rank - 2], columns = shape.shape[shape.rank - 1];
  const bool shares = form == NewtonSchulzForm::gram && shape.dtype == MLG_F32 &&
                      std::max(rows, columns) >= 2 * std::min(rows, columns);
  return shares ? 3 : 1;
}

}  // namespace

void record_matmul(sdk::Recorder& recorder, sdk::Value a, bool transpose_a, sdk::Value b, bool transpose_b,
                   sdk::Value c, double alpha, double beta) {
  launch_matmul(recorder, "matmul", a, transpose_a, b, transpose_b, c, alpha, beta);
}

void record_symmetric(sdk::Recorder& recorder, sdk::Value a, bool transpose_a, sdk::Value b, bool transpose_b,
                      sdk::Value c, double alpha, double beta) {
  launch_matmul(recorder, "symmetric_matmul", a, transpose_a, b, transpose_b, c, alpha, beta);
}

void record_last_matmul(sdk::Recorder& recorder, sdk::Value x, sdk::Value factor, bool tall, sdk::Value next,
                        double a) {
  if (tall) return record_matmul(recorder, x, false, factor, true, next, 1.0, a);
  record_matmul(recorder, factor, false, x, false, next, 1.0, a);
}

sdk::Value record_newton_schulz(sdk::Recorder& recorder, sdk::Value x, std::span<const Quintic> polynomials,
                                int iterations, NewtonSchulzForm form) {
  std::vector<Quintic> all;
  for (int i = 0; i < iterations; ++i)
    all.push_back(polynomials[std::min<std::size_t>(i, polynomials.size() - 1)]);
  const mlg_tensor shape = recorder.describe(x);
  for (int i = 0; i < iterations;) {
    const int count = std::min(shared_iterations(shape, form), iterations - i);
    x = record_iterations(recorder, x, std::span(all).subspan(i, count));
    i += count;
  }
  return x;
}

}  // namespace mulligan::optimizers
