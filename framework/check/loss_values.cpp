#include "framework/check/loss_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "framework/check/loss_probe.h"

namespace mulligan {
namespace {

constexpr std::int64_t rows = 16;

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

// The largest; NaN where one is.
double largest_of(const std::vector<float>& losses) {
  double largest = static_cast<double>(losses.front());
  for (const float loss : losses) {
    if (!(static_cast<double>(loss) <= largest)) largest = static_cast<double>(loss);
  }
  return largest;
}

}  // namespace

LossValues loss_values(Backend& backend, const Loss& loss, int vocabulary, double softcap, DType compute) {
  const LossShape shape{rows, vocabulary, 8, compute, softcap};
  LossProbe probe(backend, loss, shape, false);
  LossInputs inputs = equal_logits(shape);
  const auto v = static_cast<std::size_t>(vocabulary);
  probe.set(inputs);
  const LossOutputs equal = probe.run();
  LossValues values;
  values.equal = mean_of(equal.token_loss);
  for (std::size_t row = 0; row < rows; ++row) {
    double gradient = 0;
    for (std::size_t i = 0; i < v; ++i) {
      const auto one = static_cast<double>(equal.logits_gradient[row * v + i]);
      const double own = i == static_cast<std::size_t>(inputs.targets[row]) ? 1 : 0;
      gradient += one;
      const double off = std::abs(one - (1 / static_cast<double>(v) - own));
      if (!(off <= values.furthest)) values.furthest = off;
    }
    if (!(std::abs(gradient) <= values.largest_row_sum)) values.largest_row_sum = std::abs(gradient);
  }
  constexpr float certain = 150;
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t i = 0; i < v; ++i) {
      inputs.logits[row * v + i] = i == static_cast<std::size_t>(inputs.targets[row]) ? certain : -certain;
    }
  }
  probe.set(inputs);
  values.certain = largest_of(probe.run().token_loss);
  // A softcap lets logits be no further apart than twice itself, and leaves the others a share.
  const double cap = softcap > 0 ? softcap * std::tanh(certain / softcap) : certain;
  values.softcap_leaves = std::log1p((static_cast<double>(v) - 1) * std::exp(-2 * cap));
  return values;
}

double uniform_slack(int vocabulary, DType compute) {
  return (compute == MLG_F32 ? 1e-4 : 2e-3) * std::log(vocabulary);
}

bool is_in_bits(double equal, int vocabulary) {
  const double nats = std::log(vocabulary);
  return std::abs(equal * std::numbers::ln2 - nats) < 0.01 * nats;
}

std::string loss_value_problem(const LossValues& values, bool is_cross_entropy, int vocabulary,
                               DType compute) {
  if (!is_cross_entropy) {
    if (values.certain < values.equal) return {};
    return fmt::format(
        "logits that name the target have a loss of {:.4g}, equal logits "
        "one of {:.4g}: it must fall as the target becomes more likely",
        values.certain, values.equal);
  }
  const double nats = std::log(vocabulary);
  const bool bits = is_in_bits(values.equal, vocabulary);
  if (!bits && values.equal >= nats - uniform_slack(vocabulary, compute)) return {};
  return fmt::format(
      "the loss of equal logits is {:.5f}, but ln {} is {:.5f} nats{}; a loss that is not a cross entropy in "
      "nats must declare it (cross_entropy = false in its class)",
      values.equal, vocabulary, nats, bits ? " (it is log2 of it: the loss is in bits)" : "");
}

}  // namespace mulligan
