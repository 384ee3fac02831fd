// Rotary position embedding tables.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/config/model_config.h"

namespace mulligan {

struct RopeTables {
  std::vector<float> cos, sin;  // [positions, dims/2]
};

// The angle of (position t, pair i) is float(t) * frequency i (RopeForm), all in f32, as in the references. The record's script
// divides 1 by a power of base; the benchmark's takes a power of 1/base at evenly spaced exponents. With RopeTable::bf16 the
// frequencies are rounded to bf16. The published script does so, while its compiled code keeps the tables in f32
// (docs/record_run.md#rotary-embedding).
RopeTables rope_tables(const RopeConfig& rope, std::int64_t positions);
// The tables of a model. The kernels turn a pair (a, b) to (a cos + b sin, b cos - a sin), as the record's script does. Qwen2
// turns it the other way, so its sines have the other sign.
RopeTables rope_tables(const ModelConfig& model, std::int64_t positions);

}  // namespace mulligan
