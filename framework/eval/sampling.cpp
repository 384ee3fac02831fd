#include "framework/eval/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "framework/core/philox.h"

namespace mulligan {

int choose_token(std::span<const float> logits, const Sampling& sampling, std::uint64_t draw) {
  const auto greedy = static_cast<int>(std::ranges::max_element(logits) - logits.begin());
  if (sampling.temperature == 0 || sampling.top_k == 1) return greedy;
  std::vector<int> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto logit = [&](int token) { return logits[static_cast<std::size_t>(token)]; };
  std::ranges::stable_sort(order, [&](int a, int b) { return logit(a) > logit(b); });
  if (sampling.top_k > 0 && sampling.top_k < static_cast<std::int64_t>(order.size()))
    order.resize(static_cast<std::size_t>(sampling.top_k));

  std::vector<double> weights;
  for (const int token : order)
    weights.push_back(std::exp((static_cast<double>(logit(token)) - static_cast<double>(logit(greedy))) /
                               sampling.temperature));
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  double rest = PhiloxStream(sampling.seed, "generate").uniform(draw) * total;
  for (std::size_t i = 0; i < order.size(); ++i) {
    rest -= weights[i];
    if (rest < 0) return order[i];
  }
  return greedy;  // rounding left nothing over
}

double token_loss_nats(std::span<const float> logits, int token) {
  const double highest = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - highest);
  return highest + std::log(sum) - static_cast<double>(logits[static_cast<std::size_t>(token)]);
}

}  // namespace mulligan
