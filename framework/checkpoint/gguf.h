// A model of the family qwen2 as one GGUF file, for programs of the llama.cpp family.
#pragma once

#include "framework/checkpoint/hugging_face.h"

namespace mulligan {

// Version 3 of the format, architecture "qwen2", with the SentencePiece model's pieces. Matrices have `dtype` (default f32), vectors
// f32. Throws config_error for another family, for a SentencePiece model that does not merge pairs, and without such a model.
void write_gguf(const std::filesystem::path& file, const PublishedContents& contents,
                std::optional<StoredType> dtype);

}  // namespace mulligan
