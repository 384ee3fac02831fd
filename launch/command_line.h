// The mulligan command line: subcommands, options, exit codes.
#pragma once

#include "framework/core/error.h"

namespace mulligan {

// Parses the arguments and runs the subcommand they name. Errors are printed to stderr as one sentence,
// "mulligan: ..."; nothing is thrown. Returns 0 ok, 1 run failed, 2 bad configuration, command line or
// plugin, 3 bad data.
ExitCode run_command_line(int argc, char** argv);

}  // namespace mulligan
