// D33: the precision that a backend computes in, measured, and what a run keeps in which dtype.
#pragma once

#include <vector>

#include "framework/config/run_config.h"
#include "framework/core/tensor_type.h"
#include "framework/doctor/finding.h"
#include "framework/plugin/backend.h"

namespace mulligan::doctor {

// Products of numbers that fp32 holds exactly and TF32 or bf16 do not, and a sum that a bf16 or fp16
// accumulator loses. With compute dtype bf16 the inputs are rounded to it, and the sum must still be one
// in fp32.
Finding check_precision(Backend& backend, const RunConfig& config, DType compute);

}  // namespace mulligan::doctor
