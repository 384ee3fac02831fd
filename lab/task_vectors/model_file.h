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

// Weights that were unpacked or merged, as a file that every command reads.

// Writes f32 weights atomically, with their sha256 in the metadata. `values` gives those of a parameter.
// Refuses to replace a file: what stands there may be the only exact copy (config_error). Throws run_error.
void save_model(const std::filesystem::path& path, const std::vector<Parameter>& parameters,
                std::vector<std::vector<float>> values, std::map<std::string, std::string> metadata);

// The same refusal, before anything is computed.
void require_new_file(const std::filesystem::path& path);

// What weights made of `model` say: its configuration and the digests of its data, and with `how` in the key
// "derived" that they are not those that were trained.
std::map<std::string, std::string> metadata_of(const Model& model, const std::string& how);

// The same for weights merged of `models`: the configuration of the first that has one, and as training data the
// shards of all. Throws data_error where two were trained with different tokenizers: their tokens mean
// different things.
std::map<std::string, std::string> metadata_of_merged(const Model& base, const std::vector<Model>& models,
                                                      const std::string& how);

}  // namespace mulligan::task_vectors
