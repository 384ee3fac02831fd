// A model as a folder that the Python library transformers loads, or as one GGUF file.
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
                               std::optional<DType> dtype);

// A model of the family qwen2 as one GGUF file, for programs of the llama.cpp family: version 3 of the format, architecture
// "qwen2", with the SentencePiece model's pieces. Matrices have `dtype` (default f32), vectors f32. Throws config_error for another
// family, for a SentencePiece model that does not merge pairs, and without such a model.
void write_gguf(const std::filesystem::path& file, const PublishedContents& contents,
                std::optional<DType> dtype);

}  // namespace mulligan
