// Parts of the subcommands of lab/.
#pragma once

namespace CLI {
class App;
}

namespace mulligan {

// Of `probe`.
void add_probe_logits(CLI::App& probe);
void add_probe_attention(CLI::App& probe);  // and attention-bias
void add_probe_calibration(CLI::App& probe);
void add_probe_consistency(CLI::App& probe);
void add_probe_ensemble(CLI::App& probe);
// Of `vectors`.
void add_vectors_merge(CLI::App& vectors);

}  // namespace mulligan
