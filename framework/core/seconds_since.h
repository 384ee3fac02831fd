// Durations on the clock that never jumps, the kernel's.
#pragma once

#include <chrono>

#include "framework/core/kernel_clock.h"

namespace mulligan {

using SteadyTime = KernelClock::time_point;

inline double seconds_since(SteadyTime start) {
  return std::chrono::duration<double>(KernelClock::now() - start).count();
}

}  // namespace mulligan
