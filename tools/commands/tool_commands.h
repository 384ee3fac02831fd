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

// Bits per byte after test-time training, as `stats accept` reads --reference: of numbers, run directories and submissions.
std::vector<double> reference_scores(const std::vector<std::string>& words);

// --dry-run and what goes with it.
TrainAnswer declare_dry_run(CLI::App& train);

}  // namespace mulligan
