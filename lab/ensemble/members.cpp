#include "lab/ensemble/members.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "framework/core/error.h"
#include "framework/model/parameters.h"
#include "framework/plugin/plugin_threads.h"
#include "framework/run/weights.h"

namespace mulligan::ensemble {
namespace {

// A weight as the plugin sees it: rows are output channels, those of a bank one matrix after another.
std::int64_t columns_of(const TensorType& type) {
  return type.dims[static_cast<std::size_t>(type.rank) - 1];
}

// The first element that is not finite; as many as there are where all are.
std::size_t first_odd(std::span<const float> values) {
  const auto odd = std::ranges::find_if(values, [](float value) { return !std::isfinite(value); });
  return static_cast<std::size_t>(odd - values.begin());
}

}  // namespace

bool changes(const ParameterSpec& spec, const ModelConfig& model) {
  return spec.matrix && spec.type.rank >= 2 && spec.name != embedding_parameter(model);
}

MemberBytes member_bytes(const Ensemble& plugin, const std::vector<ParameterLayout>& layouts,
                         const ModelConfig& model) {
  MemberBytes bytes;
  for (const ParameterLayout& layout : layouts) {
    const TensorType& type = layout.spec.type;
    if (!changes(layout.spec, model)) {
      bytes.kept += static_cast<std::uint64_t>(type.elements()) * sizeof(float);
      continue;
    }
    const std::int64_t columns = columns_of(type);
    const double stored = plugin.stored_bytes(type.elements() / columns, columns);
    if (!(stored >= 0) || stored > 0x1p62) {
      throw run_error("{}: it says that '{}' takes {} bytes; fix the plugin.", plugin.plugin().description(),
                      layout.spec.name, stored);
    }
    bytes.changed_weights += type.elements();
    bytes.member += static_cast<std::uint64_t>(std::ceil(stored));
  }
  return bytes;
}

Members::Members(LoadedModel& model, const ModelConfig& config, const Ensemble& plugin, std::uint64_t seed,
                 int threads)
    : model_(model), plugin_(plugin), seed_(seed), threads_(threads) {
  for (const ParameterLayout& layout : model.layouts()) {
    if (!changes(layout.spec, config)) continue;
    weights_.push_back({&layout, model.store().download_as<float>(master_name(layout.spec.name))});
    const std::vector<float>& centre = weights_.back().centre;
    const std::size_t odd = first_odd(centre);
    if (odd == centre.size()) continue;
    throw run_error(
        "element {} of the weight '{}' is {}, so no members can be made; the training run has diverged.", odd,
        layout.spec.name, centre[odd]);
  }
}

void Members::make_centre() {
  model_.load([&](TensorStore& store, const std::vector<ParameterLayout>&) {
    for (const Weight& weight : weights_) upload_master(store, *weight.layout, weight.centre);
  });
}

void Members::make(std::int64_t member) {
  set_plugin_threads(threads_);
  model_.load([&](TensorStore& store, const std::vector<ParameterLayout>&) {
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      const Weight& weight = weights_[i];
      const std::string& name = weight.layout->spec.name;
      const std::int64_t columns = columns_of(weight.layout->spec.type);
      made_.assign(weight.centre.size(), std::nanf(""));
      plugin_.make({name.c_str(), weight.centre.data(), std::ssize(weight.centre) / columns, columns,
                    static_cast<std::int64_t>(i), seed_, member, plugin_parallel_for},
                   made_.data());
      const std::size_t odd = first_odd(made_);
      if (odd < made_.size()) {
        throw run_error("{}: element {} of the weight '{}' of member {} is not finite, or was not written.",
                        plugin_.plugin().description(), odd, name, member);
      }
      upload_master(store, *weight.layout, made_);
    }
  });
}

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
