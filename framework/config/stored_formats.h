// In which forms an artifact stores tensors and streams.
#pragma once

#include "framework/config/words.h"

namespace mulligan {

// How one tensor is stored. integer: codes of `bits` bits with an fp16 scale per row, chosen by the quantiser
// plugin. int8_row: codes of 8 bits, scale absmax/127 per row, by the host.
enum class TensorFormat { integer, int8_row, fp16, bf16, fp32 };
template <>
inline constexpr auto config_words<TensorFormat> = std::array{"int", "int8_row", "fp16", "bf16", "fp32"};

// How the streams of an artifact are compressed. adaptive: codes by the coder of artifact/code_coder, all else
// by Brotli.
enum class Compression { brotli, zlib, adaptive };
template <>
inline constexpr auto config_words<Compression> = std::array{"brotli", "zlib", "adaptive"};

// Roles: embedding, q, k, v, attention output, MLP up, MLP down. The order of rows is stored.
enum class CodeStreams { width, role, role_ordered, role_all_ordered };
template <>
inline constexpr auto config_words<CodeStreams> =
    std::array{"width", "role", "role_ordered", "role_all_ordered"};

}  // namespace mulligan
