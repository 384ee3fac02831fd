// Parameters in a store: how they get there, and what kernels read of them.
#pragma once

#include <cstddef>
#include <vector>

#include "framework/graph/tensor_store.h"
#include "framework/model/parameter_values.h"

namespace mulligan {

// Bytes of f32 values stored as `dtype`: f32, or f16 and bf16 rounded to nearest even. Throws std::logic_error for other
// dtypes.
std::vector<std::byte> encode_floats(const std::vector<float>& values, DType dtype);
// Puts values into the master of `layout`, rounded where that is narrower.
void upload_master(TensorStore& store, const ParameterLayout& layout, const std::vector<float>& values);

// Brings the copies of `layouts`, where the compute dtype differs from the masters', up to date with these.
// Waits for the device.
void refresh_copies(TensorStore& store, const std::vector<ParameterLayout>& layouts);

}  // namespace mulligan
