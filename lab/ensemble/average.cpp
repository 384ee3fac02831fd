#include "lab/ensemble/average.h"

#include <algorithm>
#include <cmath>

namespace mulligan::ensemble {

ProbabilityAverage::ProbabilityAverage(std::size_t tokens, std::size_t vocabulary, std::size_t members)
    : vocabulary_(vocabulary),
      members_(members),
      probabilities_(tokens * vocabulary),
      losses_(tokens * members),
      choices_(tokens * members),
      answers_(tokens) {}

std::size_t ProbabilityAverage::bytes_per_token(std::size_t vocabulary, std::size_t members) {
  return vocabulary * sizeof(float) + members * (sizeof(double) + sizeof(int)) + sizeof(int);
}

void ProbabilityAverage::add(std::size_t member, std::size_t token, std::span<const float> logits,
                             std::size_t answer) {
  const calibration::Choice chosen = calibration::choose(logits, answer);
  losses_[token * members_ + member] = chosen.prediction.loss_nats;
  choices_[token * members_ + member] = static_cast<int>(chosen.choice);
  answers_[token] = static_cast<int>(answer);
  // exp(z - log sum exp z), by the loss of the answer.
  const double log_sum = chosen.prediction.loss_nats + static_cast<double>(logits[answer]);
  float* sums = probabilities_.data() + token * vocabulary_;
  for (std::size_t i = 0; i < vocabulary_; ++i)
    sums[i] += static_cast<float>(std::exp(static_cast<double>(logits[i]) - log_sum));
}

void ProbabilityAverage::take(std::size_t tokens, AverageSums& sums) {
  sums.members.resize(members_);
  for (std::size_t token = 0; token < tokens; ++token) {
    const std::span<const float> mean(probabilities_.data() + token * vocabulary_, vocabulary_);
    const std::span<const double> losses(losses_.data() + token * members_, members_);
    const std::span<const int> choices(choices_.data() + token * members_, members_);
    const auto choice = static_cast<int>(std::ranges::max_element(mean) - mean.begin());
    const AveragedLoss averaged = averaged_loss(losses);
    // The sum of f32 may lie above 1 by rounding.
    const double confidence = std::min(
        1.0, static_cast<double>(mean[static_cast<std::size_t>(choice)]) / static_cast<double>(members_));
    sums.predictions.push_back({confidence, choice == answers_[token], averaged.loss_nats});
    sums.loss_nats += averaged.loss_nats;
    sums.mean_loss_nats += averaged.mean_nats;
    sums.ambiguity_nats += averaged.ambiguity_nats;
    for (std::size_t k = 0; k < members_; ++k) {
      sums.members[k].loss_nats += losses[k];
      sums.members[k].right += choices[k] == answers_[token] ? 1 : 0;
      sums.disagreements += choices[k] != choice ? 1 : 0;
    }
  }
  std::ranges::fill(probabilities_, 0.0F);
}

// With d_k = loss_k - least: -ln mean exp(-loss) = least - ln(1 + mean(e^-d - 1)). Both terms below are small
// where members nearly agree, so nothing cancels.
AveragedLoss averaged_loss(std::span<const double> losses) {
  const double least = *std::ranges::min_element(losses);
  double above = 0, shrunk = 0;
  for (const double loss : losses) {
    above += loss - least;
    shrunk += std::expm1(least - loss);
  }
  const auto n = static_cast<double>(losses.size());
  const double below = -std::log1p(shrunk / n);
  return {least + below, least + above / n, above / n - below};
}

}  // namespace mulligan::ensemble
