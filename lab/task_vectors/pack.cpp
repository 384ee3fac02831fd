#include "lab/task_vectors/task_vectors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "framework/core/error.h"
#include "framework/core/utf8.h"
#include "lab/task_vectors/bit_packing.h"

namespace mulligan::task_vectors {
namespace {

void check(const std::vector<Model>& models, const PackOptions& options) {
  const auto require_bits = [](int bits, const char* what) {
    if (bits < fewest_bits || bits > most_bits)
      throw config_error("{} = {} is outside of {} to {}.", what, bits, fewest_bits, most_bits);
  };
  require_bits(options.bits, "bits");
  if (options.base_bits != 0) require_bits(options.base_bits, "base bits");
  if (models.empty()) throw config_error("task vectors are made of one fine-tuned model or more; name one.");
  std::set<std::string> names;
  for (const Model& model : models) {
    if (!is_utf8(model.name)) throw config_error("'{}' is not a name in UTF-8; use NAME=PATH.", model.source);
    if (model.name.empty() || !names.insert(model.name).second) {
      throw config_error("two of the models are named '{}'; name them otherwise with NAME=PATH.", model.name);
    }
  }
}

std::vector<double> difference(const std::vector<float>& from, const std::vector<float>& to) {
  std::vector<double> result(to.size());
  for (std::size_t i = 0; i < to.size(); ++i)
    result[i] = static_cast<double>(to[i]) - static_cast<double>(from[i]);
  return result;
}

// The codes of `differences`, which are then added to `weights` as unpacking does.
Codes encode(const std::vector<double>& differences, int bits, std::vector<float>& weights) {
  const Grid grid = fit_grid(differences, bits);
  const std::vector<std::uint8_t> codes = quantise(differences, grid, bits);
  add_codes(codes, grid, weights);
  return {grid, pack_codes(codes, bits)};
}

double largest_error(const std::vector<float>& unpacked, const std::vector<float>& original) {
  double largest = 0;
  for (const double difference : difference(original, unpacked)) {
    if (!std::isfinite(difference)) return HUGE_VAL;
    largest = std::max(largest, std::abs(difference));
  }
  return largest;
}

// All tasks' codes of one parameter.
void pack_parameter(const Model& base, const std::vector<Model>& models, std::size_t index,
                    TaskVectors& vectors) {
  std::vector<float> start = base.values(index);
  std::vector<std::vector<float>> tuned;
  for (const Model& model : models) tuned.push_back(model.values(index));
  if (vectors.base_bits > 0) {
    std::vector<double> mean(start.size());
    for (std::size_t i = 0; i < start.size(); ++i) {
      double sum = 0;
      for (const auto& values : tuned) sum += values[i];
      mean[i] = sum / static_cast<double>(tuned.size()) - static_cast<double>(start[i]);
    }
    vectors.mean.push_back(encode(mean, vectors.base_bits, start));
  }
  for (std::size_t task = 0; task < models.size(); ++task) {
    std::vector<float> weights = start;
    Task& packed = vectors.tasks[task];
    packed.tensors.push_back(encode(difference(start, tuned[task]), vectors.bits, weights));
    const double error = largest_error(weights, tuned[task]);
    if (!std::isfinite(error)) {
      throw data_error(
          "'{}' and its base lie so far apart in '{}' that what is unpacked would not be finite; they are not "
          "models of one kind.",
          models[task].source, base.parameters[index].name);
    }
    packed.largest_error = std::max(packed.largest_error, error);
  }
}

}  // namespace

TaskVectors pack(const Model& base, const std::vector<Model>& models, const PackOptions& options) {
  check(models, options);
  if (!is_utf8(base.name)) throw config_error("'{}' is not a path in UTF-8; rename it.", base.source);
  TaskVectors vectors{base.name, base.sha256, options.bits, options.base_bits, base.parameters, {}, {}};
  for (const Model& model : models) {
    require_same_parameters(base, model);
    vectors.tasks.push_back({model.name, model.sha256, 0, model.metadata, {}});
  }
  for (std::size_t index = 0; index < base.parameters.size(); ++index)
    pack_parameter(base, models, index, vectors);
  return vectors;
}

namespace {

using Differences = std::vector<std::vector<double>>;  // by model

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

std::vector<std::vector<float>> merge(const Model& base, const std::vector<Model>& models,
                                      const MergeOptions& options) {
  check(base, models, options);
  const bool by_ties = options.method == MergeMethod::ties;
  std::optional<Ties> ties;
  if (by_ties) ties.emplace(base, models, options.keep);
  const double share =
      options.method == MergeMethod::average ? 1.0 / static_cast<double>(models.size()) : 1.0;
  std::vector<std::vector<float>> merged;
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
    merged.push_back(std::move(values));
  }
  return merged;
}

}  // namespace mulligan::task_vectors
