// mulligan probe logits|attention|attention-bias|calibration|consistency|ensemble
#include <CLI/CLI.hpp>

#include "lab/commands/lab_commands.h"
#include "launch/commands/commands.h"

namespace mulligan {

void add_probe_command(CLI::App& app) {
  CLI::App* probe = app.add_subcommand(
      "probe", "Measures a trained model: rounding, attention, confidence, ensembles of rounded weights");
  probe->callback([probe] { require_command(*probe); });
  add_probe_logits(*probe);
  add_probe_attention(*probe);
  add_probe_calibration(*probe);
  add_probe_consistency(*probe);
  add_probe_ensemble(*probe);
}

}  // namespace mulligan
