#include "lab/task_vectors/merge.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "framework/core/error.h"

namespace mulligan::task_vectors {
namespace {

using Differences = std::vector<std::vector<double>>;  // by model

std::vector<double> difference(const std::vector<float>& base, const std::vector<float>& tuned) {
  std::vector<double> result(base.size());
  for (std::size_t i = 0; i < base.size(); ++i)
    result[i] = static_cast<double>(tuned[i]) - static_cast<double>(base[i]);
  return result;
}

Differences differences(const std::vector<float>& start, const std::vector<Model>& models,
                        std::size_t index) {
  Differences result;
  for (const Model& model : models) result.push_back(difference(start, model.values(index)));
  return result;
}

void check(const Model& base, const std::vector<Model>& models, const MergeOptions& options) {
  if (models.empty()) throw config_error("there is nothing to merge; name one fine-tuned model or more.");
  if (!std::isfinite(options.scale)) throw config_error("scale = {} is not a number.", options.scale);
  if (!(options.keep > 0 && options.keep <= 1))
    throw config_error("keep = {} is outside of 0 (exclusive) to 1.", options.keep);
  for (const Model& model : models) require_same_parameters(base, model);
}

// What TIES decides over all weights at once.
class Ties {
 public:
  Ties(const Model& base, const std::vector<Model>& models, double keep) {
    for (const Model& model : models) thresholds_.push_back(threshold(base, model, keep));
    double positive = 0, negative = 0;
    for (std::size_t index = 0; index < base.parameters.size(); ++index) {
      const Differences tau = differences(base.values(index), models, index);
      for (std::size_t i = 0; i < tau.front().size(); ++i) {
        const double sum = sum_of_kept(tau, i);
        positive += sum > 0;
        negative += sum < 0;
      }
    }
    majority_ = positive >= negative ? 1 : -1;
  }

  double merged(const Differences& tau, std::size_t i) const {
    const double sum = sum_of_kept(tau, i), sign = sum != 0 ? sum : majority_;
    double agreed = 0;
    int count = 0;
    for (std::size_t t = 0; t < tau.size(); ++t) {
      if (!stays(tau, t, i) || tau[t][i] * sign <= 0) continue;
      agreed += tau[t][i];
      ++count;
    }
    return count > 0 ? agreed / count : 0;
  }

 private:
  // The magnitude from which on a difference is among the `keep` share of the largest.
  static double threshold(const Model& base, const Model& model, double keep) {
    std::vector<double> magnitudes;
    for (std::size_t index = 0; index < base.parameters.size(); ++index) {
      for (const double value : difference(base.values(index), model.values(index)))
        magnitudes.push_back(std::abs(value));
    }
    const auto kept = static_cast<std::size_t>(std::floor(keep * static_cast<double>(magnitudes.size())));
    if (kept == 0) return HUGE_VAL;
    const auto border = magnitudes.begin() + static_cast<std::ptrdiff_t>(kept - 1);
    std::ranges::nth_element(magnitudes, border, std::greater<>{});
    return *border;
  }

  bool stays(const Differences& tau, std::size_t t, std::size_t i) const {
    return std::abs(tau[t][i]) >= thresholds_[t];
  }
  double sum_of_kept(const Differences& tau, std::size_t i) const {
    double sum = 0;
    for (std::size_t t = 0; t < tau.size(); ++t) sum += stays(tau, t, i) ? tau[t][i] : 0;
    return sum;
  }

  std::vector<double> thresholds_;  // by model
  double majority_ = 1;
};

}  // namespace

void merge(const Model& base, const std::vector<Model>& models, const MergeOptions& options,
           const std::function<void(std::size_t index, std::vector<float> values)>& take) {
  check(base, models, options);
  const bool by_ties = options.method == MergeMethod::ties;
  std::optional<Ties> ties;
  if (by_ties) ties.emplace(base, models, options.keep);
  const double share =
      options.method == MergeMethod::average ? 1.0 / static_cast<double>(models.size()) : 1.0;
  for (std::size_t index = 0; index < base.parameters.size(); ++index) {
    std::vector<float> values = base.values(index);
    const Differences tau = differences(values, models, index);
    for (std::size_t i = 0; i < values.size(); ++i) {
      double change = 0;
      if (by_ties) {
        change = ties->merged(tau, i);
      } else {
        for (const std::vector<double>& of_model : tau) change += of_model[i];
      }
      values[i] = static_cast<float>(static_cast<double>(values[i]) + options.scale * (share * change));
      if (!std::isfinite(values[i])) {
        throw data_error("merging with scale {} gives '{}' the value {} at element {}; take a smaller scale.",
                         options.scale, base.parameters[index].name, values[i], i);
      }
    }
    take(index, std::move(values));
  }
}

}  // namespace mulligan::task_vectors
