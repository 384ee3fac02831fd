// Starting the process of a rank.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "launch/launcher/rank_output.h"

namespace mulligan {

struct RankCommand {
  std::string program;
  std::vector<std::string> arguments, environment;
  std::vector<int> processors;  // to which it is bound; empty: to none
};

// Starts a process in a group of its own with the usual signals and /dev/null as its standard input, and
// gives `output` what it writes to. It is killed when the calling thread ends. With `terminals` a stream that
// is a terminal here is one there, too. Throws run_error when the system refuses, config_error when there is
// no such program.
pid_t start_rank(const RankCommand& command, const LaunchConsole& console, bool terminals,
                 RankOutput& output);

// A terminal of a rank gets the size of this process's. `descriptor`: its side of it.
void copy_terminal_size(int descriptor);

}  // namespace mulligan
