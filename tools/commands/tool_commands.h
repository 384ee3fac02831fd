// Parts of the subcommands of tools/.
#pragma once

#include <string>

#include "launch/commands/commands.h"
#include "launch/program_parts.h"

namespace mulligan {

// `config` is the command that `init` belongs to.
void add_config_init_command(CLI::App& config);

// `stats_command` is the command that `arena` belongs to.
void add_stats_arena_command(CLI::App& stats_command);

// --dry-run and what goes with it.
TrainAnswer declare_dry_run(CLI::App& train);

// Paths; empty: not wanted.
struct MetricsExport {
  std::string tensorboard;  // folder for an event file
  std::string csv;          // table with a row per reported step
};

// Prints the path of each file that it writes, and warns of what the directory's files are doubted for. Throws Error.
void export_metrics(const std::string& run, const MetricsExport& wanted);

}  // namespace mulligan
