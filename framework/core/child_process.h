// Starting another program.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace mulligan {

// Replaces this process by a program (found by PATH) with its arguments, program name first, without a shell. It gets the
// usual signals: none blocked, nor ignored by take_over_signals(). Returns where it cannot be started.
void become_program(const std::vector<std::string>& arguments);

struct ProgramStart {
  std::string program;                   // its path, or a name that is found by PATH
  std::vector<std::string> arguments;    // its name first
  std::vector<std::string> environment;  // "NAME=VALUE" each; empty: this process's
  int output = -1, errors = -1;          // descriptors that become its standard output and standard error
  std::vector<int> cpus = {};            // that it may run on; empty: those of this thread
  int death_signal = SIGTERM;            // that it gets when the calling thread ends
};
// Starts a program with the usual signals, in a process group of its own. Its standard input is /dev/null. Returns its process; -1 with the
// reason in errno if it could not be started.
pid_t start_program(const ProgramStart& start);

// What the one who runs a program hears of it, and may say. All are called in the thread that waits.
struct ProgramWatch {
  // Bytes that the child wrote to standard output or standard error, as they came.
  std::function<void(std::string_view)> output, errors;
  // Asked at least five times a second: a signal that the child is to end by, 0 for none. Passed on once.
  std::function<int()> stop;
};
// Runs a program as above and waits for it. The terminal's Ctrl-C reaches it only as `stop` says. If this process is killed, it gets
// SIGTERM. Returns its exit status as of waitpid (0: success), or -1 if it could not be started.
int run_program(const std::vector<std::string>& arguments, const ProgramWatch& watch);

}  // namespace mulligan
