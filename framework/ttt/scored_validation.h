// The validation tokens that test-time training scores.
#pragma once

#include "framework/config/run_config.h"
#include "framework/eval/evaluate.h"

namespace mulligan {

// All of them; whole rows where the configuration leaves the remainder unscored. Throws data_error when a
// file is bad or nothing is left.
ValidationSet scored_validation(const RunConfig& config);

}  // namespace mulligan
