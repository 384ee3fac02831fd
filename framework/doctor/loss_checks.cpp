#include "framework/doctor/loss_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "framework/check/loss_probe.h"

namespace mulligan::doctor {
namespace {

constexpr std::int64_t rows = 4;
constexpr double none = std::numeric_limits<double>::infinity();

}  // namespace

Finding judge_uniform_loss(double loss, int vocabulary, DType compute) {
  const double nats = std::log(vocabulary), slack = (compute == MLG_F32 ? 1e-4 : 2e-3) * nats;
  Finding f;
  f.id = "D01";
  f.title = "loss of equal logits";
  f.measured = fmt::format("{:.5f}; ln {} = {:.5f} nats, log2 {} = {:.5f} bits", loss, vocabulary, nats,
                           vocabulary, nats / std::numbers::ln2);
  f.threshold = fmt::format("fails more than {:.5f} below ln V, warns as much above", slack);
  f.verdict = judge(loss, {nats - slack, none, -none, nats + slack});
  const bool bits = std::abs(loss * std::numbers::ln2 - nats) < 0.01 * nats;
  if (bits) f.verdict = Verdict::fail;
  if (f.verdict == Verdict::pass) return f;
  f.message = fmt::format("the loss of equal logits is {:.5f}, but ln {} is {:.5f} nats{}", loss, vocabulary,
                          nats, bits ? "; it is log2 of it: the loss is in bits" : "");
  f.hint = f.verdict == Verdict::fail
               ? "mend the loss plugin: everything here is in nats"
               : "compare this training loss with no validation loss: it holds a further term";
  return f;
}

Finding judge_loss_gradient(double certain_loss, double largest_row_sum, DType compute) {
  const double slack = compute == MLG_F32 ? 1e-4 : 4e-3;
  Finding f;
  f.id = "D02";
  f.title = "loss of certain logits, gradient of equal ones";
  f.measured =
      fmt::format("loss {:.2e}, largest sum of a gradient's row {:.2e}", certain_loss, largest_row_sum);
  f.threshold = fmt::format("either above {:.0e} fails", slack);
  f.verdict = std::max(judge(std::abs(certain_loss), {-none, slack, -none, none}),
                       judge(std::abs(largest_row_sum), {-none, slack, -none, none}));
  if (f.verdict == Verdict::pass) return f;
  f.message =
      std::abs(certain_loss) > slack
          ? fmt::format("logits that name the target have a loss of {:.4g}", certain_loss)
          : fmt::format("the gradient of a row of equal logits sums to {:.4g}, not to 0", largest_row_sum);
  f.hint = "mend the loss plugin (mulligan plugins check compares its gradients with finite differences)";
  return f;
}

namespace {

// Equal logits, targets all over the vocabulary.
LossInputs equal_logits(const LossShape& shape) {
  LossInputs inputs = sample_loss_inputs(shape);
  std::ranges::fill(inputs.logits, 0.0F);
  std::ranges::fill(inputs.upstream, 1.0F);
  std::ranges::fill(inputs.hidden, 0.0F);
  for (std::int64_t row = 0; row < rows; ++row) {
    inputs.targets[static_cast<std::size_t>(row)] =
        static_cast<std::int32_t>(row * (shape.vocabulary - 1) / (rows - 1));
  }
  return inputs;
}

double mean_of(const std::vector<float>& losses) {
  return std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(losses.size());
}

}  // namespace

double equal_logits_loss(Backend& backend, const Loss& loss, int vocabulary, double softcap, DType compute) {
  const LossShape shape{rows, vocabulary, 8, compute, softcap};
  LossProbe probe(backend, loss, shape, false);
  probe.set(equal_logits(shape));
  return mean_of(probe.run().token_loss);
}

std::vector<Finding> check_loss_values(Backend& backend, const Loss& loss, int vocabulary, double softcap,
                                       DType compute) {
  const LossShape shape{rows, vocabulary, 8, compute, softcap};
  LossProbe probe(backend, loss, shape, false);
  LossInputs inputs = equal_logits(shape);
  const auto v = static_cast<std::size_t>(vocabulary);
  probe.set(inputs);
  const LossOutputs equal = probe.run();
  double largest = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    double gradient = 0;
    for (std::size_t i = 0; i < v; ++i) gradient += static_cast<double>(equal.logits_gradient[row * v + i]);
    largest = std::max(largest, std::abs(gradient));
  }
  constexpr float certain = 150;
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t i = 0; i < v; ++i) {
      inputs.logits[row * v + i] = i == static_cast<std::size_t>(inputs.targets[row]) ? certain : -certain;
    }
  }
  probe.set(inputs);
  const LossOutputs sure = probe.run();
  // A softcap lets logits be no further apart than twice itself, and leaves the others a share.
  const double cap = softcap > 0 ? softcap * std::tanh(certain / softcap) : certain;
  const double share = std::log1p((static_cast<double>(v) - 1) * std::exp(-2 * cap));
  const Finding uniform = judge_uniform_loss(mean_of(equal.token_loss), vocabulary, compute);
  Finding sharp = judge_loss_gradient(*std::ranges::max_element(sure.token_loss) - share, largest, compute);
  // A further term, of which D01 has told, has values and gradients of its own.
  if (uniform.verdict == Verdict::warn && sharp.verdict == Verdict::fail) {
    sharp.verdict = Verdict::warn;
    sharp.hint = uniform.hint;
  }
  return {uniform, sharp};
}

}  // namespace mulligan::doctor
