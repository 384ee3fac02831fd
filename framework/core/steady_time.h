// The clock of the ledger, of budgets and of progress.
#pragma once

#include <chrono>

namespace mulligan {

using SteadyTime = std::chrono::steady_clock::time_point;

// Seconds that never go back, from any origin.
inline double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

inline double seconds_since(SteadyTime start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace mulligan
