// What a run's own evaluation says of rows of different lengths: D28.
#pragma once

#include "framework/config/run_config.h"
#include "tools/doctor/finding.h"
#include "tools/doctor/probe.h"

namespace mulligan::doctor {

// Scores some drawn tokens, of which the last row is short, by evaluate(), and holds its mean against
// the losses of all tokens. Takes memory on `backend` for the model and two short rows.
Finding check_evaluated_mean(Backend& backend, const RunConfig& config, const Weights& weights);

}  // namespace mulligan::doctor
