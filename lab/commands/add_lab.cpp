// What lab/ adds to the program.
#include "lab/attention/attention_look.h"
#include "lab/energy/energy_meter.h"
#include "launch/program_parts.h"

namespace mulligan {

void add_lab(ProgramParts& parts) {
  parts.observers.emplace_back([](bool) { return std::make_unique<energy::EnergyObserver>(); });
  parts.observers.emplace_back([](bool) { return std::make_unique<doctor::AttentionObserver>(); });
}

}  // namespace mulligan
