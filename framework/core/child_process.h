// Starting another program.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace mulligan {

// Replaces this process by a program (found by PATH) with its arguments, program name first, without a shell. It gets the
// usual signals: none blocked, nor ignored by take_over_signals(). Returns where it cannot be started.
void become_program(const std::vector<std::string>& arguments);

// What the one who runs a program hears of it, and may say. All are called in the thread that waits.
struct ProgramWatch {
  // Bytes that the child wrote to standard output or standard error, as they came.
  std::function<void(std::string_view)> output, errors;
  // Asked at least five times a second: a signal that the child is to end by, 0 for none. Passed on once.
  std::function<int()> stop;
};
// Runs a program as above and waits for it. It has a process group of its own, so that the terminal's Ctrl-C reaches it
// only as `stop` says; where this process is killed, it gets SIGTERM. Returns its exit status as of waitpid (0: success),
// or -1 when it could not be started.
int run_program(const std::vector<std::string>& arguments, const ProgramWatch& watch);

}  // namespace mulligan
