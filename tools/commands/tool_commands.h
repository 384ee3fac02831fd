// The subcommands of tools/; as launch/commands/commands.h has the core's.
#pragma once

namespace CLI {
class App;
}

namespace mulligan {

void add_prepare_command(CLI::App& app);
void add_profile_command(CLI::App& app);
void add_report_command(CLI::App& app);
void add_doctor_command(CLI::App& app);
void add_stats_command(CLI::App& app);
void add_config_command(CLI::App& app);
void add_sweep_command(CLI::App& app);
void add_record_command(CLI::App& app);

// `config` is the command that `init` belongs to.
void add_config_init_command(CLI::App& config);

}  // namespace mulligan
