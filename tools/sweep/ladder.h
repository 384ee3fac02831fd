// Short runs can lie: what leads after few steps need not lead after many. A ladder repeats a sweep at several lengths.
#pragma once

#include <string>
#include <vector>

#include "tools/sweep/sweep.h"

namespace mulligan {

// One length.
struct LadderRung {
  double factor = 1;
  std::int64_t steps = 0;  // of each training
  Sweep sweep;             // its rows, in a folder of its own
  SweepResult result;
};

// The lengths of `sweep`, without results; one of factor 1 without a ladder. `overrides` are of --set. Throws config_error
// where a ladder has no train.steps to multiply, or a row sets its own.
std::vector<LadderRung> ladder_lengths(const Sweep& sweep, const std::vector<std::string>& overrides);

// Of each row but the baseline: the gain over it (Sweep::metric, lower is better) by length: mean, standard deviation over
// seeds, and what a doubling adds, with its interval of 95 % over seeds (two or more; a line through each seed's gains by
// the logarithm of the length). Empty for one rung.
std::string ladder_table(const std::vector<LadderRung>& rungs);

// A sentence where `steps` are less than half of `target`, 0 standing for none; otherwise "".
std::string short_runs_text(std::int64_t steps, std::int64_t target);

}  // namespace mulligan
