#include "lab/task_vectors/task_vectors.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <ranges>

#include "framework/core/error.h"
#include "framework/core/sha256.h"

namespace mulligan::task_vectors {

std::size_t TaskVectors::tensor_bytes() const {
  std::size_t bytes = 0;
  for (const Parameter& parameter : parameters) {
    const std::size_t count = parameter.elements();
    bytes += tasks.size() * (packed_bytes(count, bits) + grid_bytes);
    if (base_bits > 0) bytes += packed_bytes(count, base_bits) + grid_bytes;
  }
  return bytes;
}

std::size_t TaskVectors::elements() const {
  return std::accumulate(
      parameters.begin(), parameters.end(), std::size_t{0},
      [](std::size_t sum, const Parameter& parameter) { return sum + parameter.elements(); });
}

std::size_t TaskVectors::index_of(const std::string& task) const {
  const auto found = std::ranges::find(tasks, task, &Task::name);
  if (found != tasks.end()) return static_cast<std::size_t>(found - tasks.begin());
  throw config_error("there is no task '{}'; there are: {}.", task,
                     fmt::join(tasks | std::views::transform(&Task::name), ", "));
}

namespace {

void require_base(const TaskVectors& vectors, const std::string& source, const Model& base) {
  if (base.sha256 == vectors.base_sha256) return;
  throw data_error(
      "'{}' was made of differences from '{}', whose tensors have the sha256 {}, but '{}' has {}; name that "
      "base.",
      source, vectors.base_name, short_digest(vectors.base_sha256), base.source, short_digest(base.sha256));
}

}  // namespace

Model unpacked(const TaskVectors& vectors, const std::string& source, const Model& base, std::size_t task) {
  require_base(vectors, source, base);
  Model model;
  model.name = vectors.tasks.at(task).name;
  model.source = source;
  model.sha256 = vectors.tasks[task].sha256;
  model.metadata = vectors.tasks[task].metadata;
  model.parameters = vectors.parameters;
  require_same_parameters(base, model);
  model.values = [&vectors, source, values = base.values, task](std::size_t index) {
    std::vector<float> weights = values(index);
    const auto add = [&](const Codes& codes, int bits) {
      add_codes(unpack_codes(codes.packed, weights.size(), bits), codes.grid, weights);
    };
    if (vectors.base_bits > 0) add(vectors.mean.at(index), vectors.base_bits);
    add(vectors.tasks.at(task).tensors.at(index), vectors.bits);
    if (!std::ranges::all_of(weights, [](float weight) { return std::isfinite(weight); })) {
      throw data_error("'{}' gives weights of '{}' that are not finite, so it is damaged; pack it again.",
                       source, vectors.parameters[index].name);
    }
    return weights;
  };
  return model;
}

}  // namespace mulligan::task_vectors
