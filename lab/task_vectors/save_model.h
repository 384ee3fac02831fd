// Weights that were unpacked or merged, as a file that every command reads.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lab/task_vectors/model_file.h"

namespace mulligan::task_vectors {

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
