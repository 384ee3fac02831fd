// Checks of the forward pass on the run's backend, with weights of which none is zero: D14.
#pragma once

#include <vector>

#include "framework/config/run_config.h"
#include "tools/doctor/finding.h"

namespace mulligan::doctor {

// Every call of a forward pass against its formula (formulas.h), given what the backend's own calls
// before it left: the first call that is off is named by its tap. A number may be off by 2e-5 of the
// result's rms and of itself in f32, by 2e-2 and 2^-7 in bf16.
Finding check_formulas(Backend& backend, const RunConfig& config, ComputeTypes compute);

// Positions do not see those behind them, nor other segments: the tokens of the second half are changed,
// and no logit of the first may change a bit; where one does, the first tap whose rows moved is named.
Finding check_causality(Backend& backend, const RunConfig& config, ComputeTypes compute);

// The row of the output head that belongs to a token moves that token's logit alone.
Finding check_head(Backend& backend, const RunConfig& config, ComputeTypes compute);

// All of these.
std::vector<Finding> check_forward(Backend& backend, const RunConfig& config, ComputeTypes compute);

}  // namespace mulligan::doctor
