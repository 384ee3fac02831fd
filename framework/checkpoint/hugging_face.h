// A model as a folder that the Python library transformers loads.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "framework/config/model_config.h"
#include "framework/core/safetensors.h"

namespace mulligan {

struct PublishedContents {
  ModelConfig model;
  std::map<std::string, std::string> settings;  // all keys by full name, in TOML syntax
  std::vector<StoredTensor> weights;            // under the names of this program
  std::filesystem::path tokenizer;              // SentencePiece model; empty: the folder has none
  std::int64_t context_tokens = 0;              // of a score
};

// Throws config_error where the model has a part that neither transformers' models nor GGUF compute.
void require_published_parts(const ModelConfig& model);

// Writes the new folder whole or not at all: config.json, model.safetensors (in `dtype`, without one in each
// tensor's own), the tokenizer. The family qwen2 is transformers' own; for the record's the folder holds
// Python files of its own, loaded with trust_remote_code. Throws config_error where the folder exists or the
// model has a part that the Python files do not compute.
void write_hugging_face_folder(const std::filesystem::path& folder, const PublishedContents& contents,
                               std::optional<StoredType> dtype);

}  // namespace mulligan
