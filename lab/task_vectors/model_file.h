// The weights of one model, decoded a tensor at a time: what is compared with a base, packed and merged.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "framework/core/safetensors.h"

namespace mulligan::task_vectors {

struct Parameter {
  std::string name;
  std::vector<std::int64_t> shape;
  std::size_t elements() const;  // 1 for a scalar
  bool operator==(const Parameter&) const = default;
};

// A model's weights by parameter. The parameters are sorted by name.
struct Model {
  std::string name;  // in sentences and as the name of a task: a run directory's, or a file's without ending
  std::string source;  // what the user named, in sentences
  std::string sha256;  // tensors_sha256; of unpacked weights: that of the weights that were packed
  std::map<std::string, std::string> metadata;  // of its file
  std::vector<Parameter> parameters;
  // Those of parameters[index] as f32. Throws data_error where one is NaN or infinite.
  std::function<std::vector<float>(std::size_t index)> values;
};

// A run directory (weights.safetensors), a folder with model.safetensors, or a file of weights in f32, bf16 or
// f16. Throws data_error where there is none, it is damaged (tensors_sha256_key), or holds something else.
Model open_model(const std::filesystem::path& path);

// Throws data_error, naming the first difference, unless `model` has the parameters of `base`.
void require_same_parameters(const Model& base, const Model& model);

}  // namespace mulligan::task_vectors
