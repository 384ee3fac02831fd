#include "framework/core/kernel_clock.h"

#include <fmt/format.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>

namespace mulligan {
namespace {

// The system call itself: clock_gettime() and syscall() are functions of a library, which another may replace.
timespec ask_kernel(clockid_t clock) noexcept {
  timespec time{};
#if defined(__x86_64__)
  long result = SYS_clock_gettime;
  __asm__ volatile("syscall"
                   : "+a"(result)
                   : "D"(static_cast<long>(clock)), "S"(&time)
                   : "rcx", "r11", "memory");
#elif defined(__aarch64__)
  register long number __asm__("x8") = SYS_clock_gettime;
  register long first __asm__("x0") = clock;
  register timespec* second __asm__("x1") = &time;
  __asm__ volatile("svc 0" : "+r"(first) : "r"(number), "r"(second) : "memory");
#else
  ::syscall(SYS_clock_gettime, clock, &time);
#endif
  return time;
}

double seconds_of(const timespec& time) {
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double read_uptime() {
  std::ifstream file("/proc/uptime");
  double seconds = 0;
  return file >> seconds ? seconds : 0;
}

// Clocks are read one after another, /proc/uptime is told in hundredths, and a busy machine may come between.
bool apart(double a, double b) {
  return std::abs(a - b) > 0.5 + 0.01 * std::max(std::abs(a), std::abs(b));
}

const ClockReadings readings_at_start = read_clocks();

}  // namespace

KernelClock::time_point KernelClock::now() noexcept {
  const timespec time = ask_kernel(CLOCK_MONOTONIC);
  return time_point(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
}

ClockReadings read_clocks() {
  ClockReadings now;
  now.library = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  now.kernel = seconds_of(ask_kernel(CLOCK_MONOTONIC));
  now.awake = seconds_of(ask_kernel(CLOCK_BOOTTIME));
  now.uptime = read_uptime();
  now.real = seconds_of(ask_kernel(CLOCK_REALTIME));
  now.processor = seconds_of(ask_kernel(CLOCK_PROCESS_CPUTIME_ID));
  now.processors = static_cast<int>(std::max(1L, ::sysconf(_SC_NPROCESSORS_CONF)));
  return now;
}

const ClockReadings& clocks_at_start() {
  return readings_at_start;
}

std::vector<std::string> clock_disagreements(const ClockReadings& begin, const ClockReadings& end) {
  std::vector<std::string> found;
  const double library = end.library - begin.library, kernel = end.kernel - begin.kernel;
  const double awake = end.awake - begin.awake, uptime = end.uptime - begin.uptime;
  const double processor = end.processor - begin.processor;
  if (apart(library, kernel)) {
    found.push_back(
        fmt::format("the C library's clock counted {:.2f} s where the kernel's counted {:.2f} s, so "
                    "something answers in its place",
                    library, kernel));
  }
  // Asleep the machine computes nothing, so a gap is no fraud; more seconds awake than in all are none.
  if (kernel > awake && apart(kernel, awake)) {
    found.push_back(fmt::format(
        "the monotonic clock counted {:.2f} s and the one that also counts sleep {:.2f} s", kernel, awake));
  }
  if (begin.uptime > 0 && end.uptime > 0 && apart(awake, uptime)) {
    found.push_back(fmt::format("the clocks counted {:.2f} s, but the system has been up {:.2f} s longer",
                                awake, uptime));
  }
  // Fewer processor seconds are what other processes, devices and waiting explain; more are impossible.
  const double most = kernel * end.processors;
  if (processor > most && apart(processor, most)) {
    found.push_back(fmt::format("{:.2f} s on {} processors hold no {:.2f} s of processor time", kernel,
                                end.processors, processor));
  }
  return found;
}

}  // namespace mulligan
