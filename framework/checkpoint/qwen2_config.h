// config.json of a published Qwen2 model.
#pragma once

#include <filesystem>
#include <string>

#include "framework/config/model_config.h"

namespace mulligan {

// The contents of the file, for comparison with a configuration and with tensors.
struct PublishedModel {
  ModelConfig model;         // family qwen2, derived values filled in
  std::string stored_dtype;  // "bfloat16", "float16", "float32"; empty: the file does not say
};

// Reads it. Throws data_error that names the file and the key for a file that is no JSON object, another model_type, or a missing or
// impossible value. Also throws for anything that this family does not compute: another activation than silu, scaled rotary
// frequencies, sliding windows, dropout in attention.
PublishedModel read_qwen2_config(const std::filesystem::path& file);

// The [model] table of a configuration, with [model.rope].
std::string model_table_text(const ModelConfig& model);

}  // namespace mulligan
