// The floating-point formats of weight files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "framework/core/safetensors.h"

namespace mulligan {

// True for f32, bf16 and f16; false for f64 and integers.
bool is_weight_format(DType type);
// Throws data_error that names the file unless the tensor is of such a type.
void require_weight_format(const std::filesystem::path& file, const StoredTensor& tensor);

// Values of raw bytes, and raw bytes of values. Throws std::logic_error unless is_weight_format(type).
std::vector<float> decode_weights(std::span<const std::byte> bytes, DType type);
std::vector<std::byte> encode_weights(std::span<const float> values, DType type);

}  // namespace mulligan
