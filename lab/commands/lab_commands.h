// The subcommands of lab/; as launch/commands/commands.h has the core's.
#pragma once

namespace CLI {
class App;
}

namespace mulligan {

void add_vectors_command(CLI::App& app);
void add_merge_command(CLI::App& app);
void add_calibrate_command(CLI::App& app);
void add_ensemble_command(CLI::App& app);
void add_probe_command(CLI::App& app);
void add_attention_command(CLI::App& app);

}  // namespace mulligan
