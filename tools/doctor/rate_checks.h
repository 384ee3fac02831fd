// D29: learning rates that jump where nobody said so.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/doctor/finding.h"

namespace mulligan::doctor {

// The rate of one optimiser at one point of a run.
struct RatePoint {
  double progress = 0;  // share of the run, 0 to 1
  double lr = 0;
  std::int64_t cycle = 0;  // of a schedule with restarts
  std::size_t phase = 0;
  double declared = 1;    // the phase's factor
  bool restarts = false;  // the phase says that its schedule begins anew or is taken up again
};

// Points in the order of training, close to each other. A rate that rises by more than a tenth from one
// to the next, behind the first twentieth of the run (warm-up), is declared where a restart's cycle
// begins, a phase says so, or the phases' factors explain it.
Finding check_rates(const std::string& optimizer, const std::vector<RatePoint>& points);

}  // namespace mulligan::doctor
