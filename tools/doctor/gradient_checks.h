// D13: gradients against differences of losses.
#pragma once

#include <string>

#include "framework/config/run_config.h"
#include "framework/core/tensor_type.h"
#include "framework/plugin/backend.h"
#include "framework/plugin/loss.h"
#include "framework/step/optimizer_groups.h"
#include "tools/doctor/finding.h"

namespace mulligan::doctor {

// In f32, on a short row and weights of which none is zero: along the gradient of each parameter, and
// along that of half of its elements, the loss must change as the gradient says, within 1 %. `backend`
// knows the loss's kernels.
Finding check_gradients(Backend& backend, const Loss& loss, const RunConfig& config);

// D33: the precision that a backend computes in, measured, and what a run keeps in which dtype.

// Products of numbers that fp32 holds exactly and TF32 or bf16 do not, and a sum that a bf16 or fp16
// accumulator loses. With a 16-bit compute dtype the inputs are rounded to it, and the sum must still be one
// in fp32. `kept` (kept_text) goes into what was measured.
Finding check_precision(Backend& backend, DType compute, const std::string& kept);

// In which dtypes a run keeps masters and optimiser states, and sends gradients between ranks:
// "masters: 9 in f32; optimizer matrices: momentum_buffer 9 in bf16; ...". `groups` are the run's, of which
// an update is recorded.
std::string kept_text(const RunConfig& config, OptimizerGroups& groups);

}  // namespace mulligan::doctor
