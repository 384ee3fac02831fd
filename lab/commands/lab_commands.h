// The subcommands of lab/; as launch/commands/commands.h has the core's.
#pragma once

namespace CLI {
class App;
}

namespace mulligan {

void add_probe_command(CLI::App& app);
void add_vectors_command(CLI::App& app);

// Of `probe`.
void add_probe_logits(CLI::App& probe);
void add_probe_attention(CLI::App& probe);  // and attention-bias
void add_probe_calibration(CLI::App& probe);
void add_probe_consistency(CLI::App& probe);
void add_probe_ensemble(CLI::App& probe);
// Of `vectors`.
void add_vectors_merge(CLI::App& vectors);

}  // namespace mulligan
