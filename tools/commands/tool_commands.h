// Parts of the subcommands of tools/.
#pragma once

#include "launch/commands/commands.h"
#include "launch/program_parts.h"

namespace mulligan {

// `config` is the command that `init` belongs to.
void add_config_init_command(CLI::App& config);

// `stats_command` is the command that `arena` belongs to.
void add_stats_arena_command(CLI::App& stats_command);

// --dry-run and what goes with it.
TrainAnswer declare_dry_run(CLI::App& train);

}  // namespace mulligan
