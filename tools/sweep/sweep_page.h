// The page of a sweep that asks for costs or stores its weights.
#pragma once

#include <string>

#include "tools/sweep/sweep.h"

namespace mulligan {

// sweep.html: the table of costs and its pictures (Sweep::costs), and the table of the files that [vectors]
// made. Empty where the sweep has neither.
std::string sweep_page(const Sweep& sweep, const SweepResult& result);

}  // namespace mulligan
