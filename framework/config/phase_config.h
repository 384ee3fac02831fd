// Phases: the stretches of a training run, one after the other, each with its own way to make a step.
//
// A run without [[phase]] rows has those of its model: one, or with depth recurrence that starts on the way two, "plain" and
// "looped". row_schemas.cpp explains the keys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "framework/config/model_config.h"
#include "framework/config/plugin_config.h"
#include "framework/config/train_config.h"
#include "framework/config/words.h"

namespace mulligan {

struct RunConfig;
struct LoadedConfig;

// Which schedule a phase follows.
enum class LrPolicy {
  continued,    // the run's, at the run's step: there is one schedule
  independent,  // one of its own, from 0 to 1 over the phase
  rejoin,       // the run's, at the run's step, although a phase before had its own: the rate may jump
};
template <>
inline constexpr auto config_words<LrPolicy> = std::array{"continue", "independent", "rejoin"};

// When a phase is over: as soon as a limit is reached. The last phase has none; it ends with the budget.
struct PhaseEnd {
  std::int64_t steps = 0;  // 0 = no such limit
  double fraction = 0.0, seconds = 0.0, through_fraction = 0.0;
  bool any() const { return steps > 0 || fraction > 0 || seconds > 0 || through_fraction > 0; }
  bool reached(std::int64_t steps_done, double budget_fraction, double elapsed_seconds) const {
    return (steps > 0 && steps_done >= steps) || (fraction > 0 && budget_fraction >= fraction) ||
           (seconds > 0 && elapsed_seconds >= seconds) ||
           (through_fraction > 0 && budget_fraction > through_fraction);
  }
};

struct Phase {
  std::string name;
  PhaseEnd until;
  LayerOrderKind layer_order = LayerOrderKind::plain;
  DType compute_dtype = MLG_F32;
  LayerCast layercast = LayerCast::off;
  std::int64_t sequence_length = 0;  // longest attention segment in tokens
  std::int64_t micro_batches = 1;    // of a step over all ranks, before a schedule's batch factor
  double lr_multiplier = 1.0;        // on the rate of every optimiser
  LrPolicy lr_policy = LrPolicy::continued;
  bool reset_optimizer = false;        // its optimisers start with empty states
  std::int64_t rewarm_steps = 0;       // the rates grow linearly over so many first steps of it; 0 = at once
  std::int64_t skip_batches = 0;       // batches of a step that are passed over, unread, when it begins
  double step_seconds = 0.0;           // of the budget that a step of it counts as; 0 = what it takes
  NoiseMode noise = NoiseMode::off;    // in the gradients; [noise] says the rest
  double noise_factor = 1.0;           // on noise.sigma
  std::vector<double> mix_weights;     // of the rows [[data.mix]]; empty where there are none
  bool declared = false;               // by a row [[phase]]: how it begins is verified
  Origin origin;                       // of that row
  std::optional<PluginTable> backend;  // section "phase.N.backend", N from 1; absent: [backend]
};

// Reads the [[phase]] rows of a file into `loaded`, or gives it the phases of its model. Throws config_error.
void read_phases(const ConfigNode& tree, LoadedConfig& loaded);

// The phase that follows `phase` after `steps_done` updates and so many seconds of training, or itself.
std::size_t phase_at(const std::vector<Phase>& phases, std::size_t phase, std::int64_t steps_done,
                     double budget_fraction, double elapsed_seconds = 0);

// "looped, bf16, segments of 2048 tokens": how a phase makes its steps.
std::string phase_text(const Phase& phase);

}  // namespace mulligan
