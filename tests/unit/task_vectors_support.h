// Small models in memory for tests of task vectors.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "framework/core/philox.h"
#include "framework/core/safetensors.h"
#include "lab/task_vectors/model_file.h"

namespace mulligan::test_support {

// Values by parameter; the parameters must come sorted by name.
using NamedValues = std::vector<std::pair<std::string, std::vector<float>>>;

inline std::vector<StoredTensor> stored(const NamedValues& values) {
  std::vector<StoredTensor> tensors;
  for (const auto& [name, numbers] : values) {
    tensors.push_back(
        {name, MLG_F32, {static_cast<std::int64_t>(numbers.size())}, std::as_bytes(std::span(numbers))});
  }
  return tensors;
}

// A model of vectors that is in no file.
inline task_vectors::Model model_of(const std::string& name, NamedValues values) {
  task_vectors::Model model{name, name, tensors_sha256(stored(values)), {}, {}, {}};
  for (const auto& [parameter, numbers] : values)
    model.parameters.push_back({parameter, {static_cast<std::int64_t>(numbers.size())}});
  model.values = [values = std::move(values)](std::size_t index) { return values.at(index).second; };
  return model;
}

// Writes such a model to a file.
inline std::filesystem::path write_model(const std::filesystem::path& path, const NamedValues& values) {
  write_safetensors(path, stored(values));
  return path;
}

// N(0, `deviation`^2) numbers of the stream `purpose`.
inline std::vector<float> normal_numbers(std::size_t count, double deviation, const std::string& purpose) {
  const PhiloxStream stream(42, purpose);
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(deviation * stream.normal(i));
  return values;
}

}  // namespace mulligan::test_support
