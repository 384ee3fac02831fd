// The mulligan command line: subcommands, options, exit codes.
#pragma once

#include <string>
#include <vector>

#include "framework/core/error.h"

namespace CLI {
class App;
}

namespace mulligan {

// Parses the arguments and runs the subcommand that they name. Prints errors to stderr as one sentence, "mulligan: ...", and
// throws nothing. Returns the exit code that exit_code_texts() explains.
ExitCode run_command_line(int argc, char** argv);

// "0 ok", "1 the run failed", ...: each exit code with its meaning.
std::vector<std::string> exit_code_texts();

// "1.0.0 (commit 1bf7f1c..., Release build, plugin interface 1.1)"
std::string version_text();

}  // namespace mulligan
