#include "lab/task_vectors/task_vectors.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
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

std::vector<double> differences(const std::vector<float>& from, const std::vector<float>& to) {
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
  for (const double difference : differences(original, unpacked)) {
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
    packed.tensors.push_back(encode(differences(start, tuned[task]), vectors.bits, weights));
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
  if (!is_utf8(base.source)) throw config_error("'{}' is not a path in UTF-8; rename it.", base.source);
  TaskVectors vectors{base.name,
                      base.sha256,
                      std::filesystem::absolute(base.source).lexically_normal().string(),
                      options.bits,
                      options.base_bits,
                      base.parameters,
                      {},
                      {}};
  for (const Model& model : models) {
    require_same_parameters(base, model);
    vectors.tasks.push_back({model.name, model.sha256, 0, model.metadata, {}});
  }
  for (std::size_t index = 0; index < base.parameters.size(); ++index)
    pack_parameter(base, models, index, vectors);
  return vectors;
}

}  // namespace mulligan::task_vectors
