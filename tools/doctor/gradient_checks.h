// D13: gradients against differences of losses.
#pragma once

#include "framework/config/run_config.h"
#include "framework/plugin/backend.h"
#include "framework/plugin/loss.h"
#include "tools/doctor/finding.h"

namespace mulligan::doctor {

// In f32, on a short row and weights of which none is zero: along the gradient of each parameter, and
// along that of half of its elements, the loss must change as the gradient says, within 1 %. `backend`
// knows the loss's kernels.
Finding check_gradients(Backend& backend, const Loss& loss, const RunConfig& config);

}  // namespace mulligan::doctor
