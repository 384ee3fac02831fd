// The weights of one model, decoded one tensor at a time, to compare with a base, to pack and to merge.
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
  std::string source;  // the user's name for it, in messages
  std::string sha256;  // tensors_sha256; of unpacked weights: that of the weights that were packed
  std::map<std::string, std::string> metadata;  // of its file
  std::vector<Parameter> parameters;
  // The values of parameters[index] as f32. Throws data_error if one is NaN or infinite.
  std::function<std::vector<float>(std::size_t index)> values;
};

// A run directory (weights.safetensors), a folder with model.safetensors, or a file of weights in f32, bf16 or f16. Throws
// data_error if there is none, if it is damaged (tensors_sha256_key), or if it holds something else.
Model open_model(const std::filesystem::path& path);

// Throws data_error that names the first difference, unless `model` has the parameters of `base`.
void require_same_parameters(const Model& base, const Model& model);

// Unpacked or merged weights, as a file that every command reads.

// Writes f32 weights atomically, with their sha256 in the metadata. `values` gives those of a parameter. Never replaces a file,
// since it may be the only exact copy (config_error). Throws run_error.
void save_model(const std::filesystem::path& path, const std::vector<Parameter>& parameters,
                std::vector<std::vector<float>> values, std::map<std::string, std::string> metadata);

// The same refusal, before anything is computed.
void require_new_file(const std::filesystem::path& path);

// The metadata of weights made of `model`: its configuration and the digests of its data. The key "derived" tells by `how` that
// they are not the trained weights.
std::map<std::string, std::string> metadata_of(const Model& model, const std::string& how);

// The same for weights merged from `models`: the configuration of the first that has one, and all shards as training data.
// Throws data_error if two were trained with different tokenizers, because their tokens mean different things.
std::map<std::string, std::string> metadata_of_merged(const Model& base, const std::vector<Model>& models,
                                                      const std::string& how);

}  // namespace mulligan::task_vectors
