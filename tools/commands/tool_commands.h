// Parts of the subcommands of tools/.
#pragma once

#include <string>
#include <vector>

#include "launch/commands/commands.h"
#include "launch/program_parts.h"

namespace mulligan {

// `config` is the command that `init` belongs to.
void add_config_init_command(CLI::App& config);

// `stats_command` is the command that `arena` belongs to.
void add_stats_arena_command(CLI::App& stats_command);

// What `stats arena` says of run directories, all of one result; `old_runs` (may be empty) are those of the result to be better
// than, `json` (may be empty) a file for the figures. Throws run_error where there is no result.
void decide_arena(const std::vector<std::string>& runs, const std::vector<std::string>& old_runs,
                  const std::string& json);

// --dry-run and what goes with it.
TrainAnswer declare_dry_run(CLI::App& train);

}  // namespace mulligan
