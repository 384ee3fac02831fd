// Starting another program.
#pragma once

#include <string>
#include <vector>

namespace mulligan {

// Runs a program (found by PATH) with its arguments, program name first, without a shell, and waits for it.
// The child gets the usual signals: none blocked, nor ignored by take_over_signals(). Returns its exit status
// as of waitpid (0: success), or -1 when it could not be started.
int run_program(const std::vector<std::string>& arguments);

}  // namespace mulligan
