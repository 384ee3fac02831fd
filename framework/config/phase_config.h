// Phases: the stretches of a training run, one after the other, each with its own way to make a step.
//
// A run without [[phase]] rows has those of its model: one, or with depth recurrence that starts on the way
// two, "plain" and "looped".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/config/model_config.h"
#include "framework/config/plugin_config.h"
#include "framework/config/precision.h"

namespace mulligan {

struct RunConfig;
struct LoadedConfig;

// When a phase is over: as soon as either limit is reached. The last phase has none; it ends with the budget.
struct PhaseEnd {
  std::int64_t steps = 0;  // updates done since the start of training; 0 = no such limit
  double fraction = 0.0;   // of the budget that is spent (as model.loop.start_fraction); 0 = no such limit
  bool reached(std::int64_t steps_done, double budget_fraction) const {
    return (steps > 0 && steps_done >= steps) || (fraction > 0 && budget_fraction >= fraction);
  }
};

struct Phase {
  std::string name;
  PhaseEnd until;
  LayerOrderKind layer_order = LayerOrderKind::plain;
  Precision compute_dtype = Precision::fp32;
  std::int64_t sequence_length = 0;    // longest attention segment in tokens
  std::int64_t micro_batches = 1;      // of a step over all ranks, before a schedule's batch factor
  double lr_multiplier = 1.0;          // on the rate of every optimiser
  std::optional<PluginTable> backend;  // section "phase.N.backend", N from 1; absent: [backend]
};

// One [[phase]] row; 0 and "" where it says nothing become the settings of [train] and [model].
struct PhaseRow {
  std::string name;
  std::int64_t until_steps = 0;
  double until_fraction = 0.0;
  std::string layer_order;
  std::string compute_dtype;
  std::int64_t sequence_length = 0;
  double lr_multiplier = 1.0;
};

// Reads the [[phase]] rows of a file into `loaded`, or gives it the phases of its model. Throws config_error.
void read_phases(const ConfigNode* list, LoadedConfig& loaded);

// The phase that follows `phase` after `steps_done` updates, or `phase` itself.
std::size_t phase_at(const std::vector<Phase>& phases, std::size_t phase, std::int64_t steps_done,
                     double budget_fraction);

// What weights are scored in: the dtype of the last phase.
Precision scored_dtype(const RunConfig& config);

// "looped, bf16, segments of 2048 tokens": how a phase makes its steps.
std::string phase_text(const Phase& phase);

}  // namespace mulligan
