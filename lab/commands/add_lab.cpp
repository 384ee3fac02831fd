// What lab/ adds to the program.
#include "lab/attention/attention_look.h"
#include "lab/commands/packed_weights.h"
#include "lab/energy/energy_meter.h"
#include "launch/program_parts.h"

namespace mulligan {

void add_lab(ProgramParts& parts) {
  parts.observers.emplace_back([](bool) { return std::make_unique<energy::EnergyObserver>(); });
  parts.observers.emplace_back([](bool) { return std::make_unique<doctor::AttentionObserver>(); });
  parts.other_weights.emplace_back(
      [](const std::string& name, const RunOptions& options) -> std::unique_ptr<WeightSource> {
        const auto packed = packed_name(name);
        return packed ? std::make_unique<WeightSource>(from_task_vectors(*packed, options)) : nullptr;
      });
}

}  // namespace mulligan
