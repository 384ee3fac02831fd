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
  std::int64_t context_tokens = 0;              // context of a score
};

// Throws config_error if the model has a part that neither transformers' models nor GGUF can compute.
void require_published_parts(const ModelConfig& model);

// Writes the new folder completely or not at all: config.json, model.safetensors (in `dtype`, or by default in each tensor's own) and
// the tokenizer. transformers has the family qwen2. For the record's family the folder holds Python files, which are loaded with
// trust_remote_code. Throws config_error if the folder exists, or if the model has a part that the Python files do not compute.
void write_hugging_face_folder(const std::filesystem::path& folder, const PublishedContents& contents,
                               std::optional<StoredType> dtype);

}  // namespace mulligan
