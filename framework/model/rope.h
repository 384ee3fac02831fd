// Rotary position embedding tables.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/config/model_config.h"
#include "framework/core/tensor_type.h"

namespace mulligan {

struct RopeTables {
  std::vector<float> cos, sin;  // [positions, dims/2]
};

// Angle of (position t, pair i) = float(t) * float(base^(-2i/dims)), all in f32, as the reference computes
// it. With RopeTable::bf16 the frequencies are rounded to bf16 and the tables to the compute dtype, as
// happens in the published script (docs/record_run.md#rotary-embedding); otherwise both stay f32.
RopeTables rope_tables(const RopeConfig& rope, std::int64_t positions, DType compute_dtype);

}  // namespace mulligan
