// The clock that seconds are booked by, and whether the clocks of this machine agree about them.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace mulligan {

// CLOCK_MONOTONIC, asked of the kernel itself: a library that is loaded before the C library, and answers in its
// place, does not see the question. It stands still while the machine sleeps and runs on while the process is
// stopped, as std::chrono::steady_clock does.
struct KernelClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<KernelClock>;
  static constexpr bool is_steady = true;
  static time_point now() noexcept;
};

// What several clocks say at one moment, in seconds from origins of their own.
struct ClockReadings {
  double library = 0;    // CLOCK_MONOTONIC as the C library tells it
  double kernel = 0;     // the same, of the kernel
  double awake = 0;      // CLOCK_BOOTTIME of the kernel: runs on while the machine sleeps
  double uptime = 0;     // /proc/uptime, which runs on as well; 0 where there is none
  double real = 0;       // CLOCK_REALTIME of the kernel: may be set, and is slewed by NTP
  double processor = 0;  // of all threads of this process
  int processors = 1;    // that this machine has
};
ClockReadings read_clocks();
// As they were when the program was loaded.
const ClockReadings& clocks_at_start();

// Which clocks tell stories between two moments that cannot both be true, one sentence without full stop each.
// Nothing is said of what happens to honest machines: sleep, stopped processes, processors that others use, a
// real-time clock that is set or slewed.
std::vector<std::string> clock_disagreements(const ClockReadings& begin, const ClockReadings& end);

using SteadyTime = KernelClock::time_point;

inline double seconds_since(SteadyTime start) {
  return std::chrono::duration<double>(KernelClock::now() - start).count();
}

}  // namespace mulligan
