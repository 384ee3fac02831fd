#include "framework/config/phase_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "framework/config/core_schema.h"
#include "framework/config/run_config.h"
#include "framework/core/error.h"

namespace mulligan {
namespace {

// "configs/x.toml:12: the phase 'long'".
std::string where(const Phase& phase) {
  return fmt::format("{}: the phase '{}'", phase.origin.text(), phase.name);
}

void check_layercast(const Phase& phase, const std::string& where) {
  if (phase.layercast == LayerCast::off || phase.compute_dtype == MLG_F32) return;
  throw config_error(
      "{}: layercast = \"{}\" stores weights of fp32 matmuls, but compute_dtype is \"{}\"; set "
      "compute_dtype = \"fp32\", or layercast = \"off\".",
      where, word_of(phase.layercast), word_of(phase.compute_dtype));
}

Phase default_phase(const RunConfig& config, std::string name, LayerOrderKind order) {
  Phase phase;
  phase.name = std::move(name);
  phase.layer_order = order;
  phase.compute_dtype = config.train.compute_dtype;
  phase.layercast = config.train.layercast;
  phase.sequence_length = config.train.sequence_length;
  phase.micro_batches = config.train.micro_batches;
  phase.noise = config.noise.mode;
  for (const DataMixRow& row : config.data.mix) phase.mix_weights.push_back(row.weight);
  return phase;
}

// Depth recurrence starts at a share of the budget, or with the first step.
std::vector<Phase> phases_of_model(const RunConfig& config) {
  const LoopConfig& loop = config.model.loop;
  std::vector<Phase> phases;
  const bool starts_later = loop.extra_passes > 0 && loop.start_fraction > 0;
  if (loop.extra_passes == 0 || starts_later) {
    phases.push_back(default_phase(config, "plain", LayerOrderKind::plain));
  }
  if (starts_later) phases.back().until.fraction = loop.start_fraction;
  if (loop.extra_passes > 0 && loop.start_fraction < 1) {
    phases.push_back(default_phase(config, "looped", LayerOrderKind::looped));
  }
  return phases;
}

Phase read_phase(const ConfigNode& node, std::size_t number, LoadedConfig& loaded) {
  static const std::vector<std::string> own_tables = {"backend"};
  Phase phase = default_phase(loaded.config, {}, scored_order(loaded.config.model));
  Settings& settings =
      loaded.rows["phase"].emplace_back(read_keys(phase, &node, "phase", node.origin.text(), own_tables));
  if (phase.name.empty()) phase.name = fmt::format("phase_{}", number);
  schema_of<Phase>().refresh(phase, settings);
  phase.origin = node.origin;
  phase.declared = true;
  check_layercast(phase, where(phase));
  if (const ConfigNode* backend = node.find("backend")) {
    phase.backend = read_plugin_table(backend, fmt::format("phase.{}.backend", number), loaded.file, "");
    config_error_if(
        !phase.backend->path.empty() || !phase.backend->stored_path.empty() || phase.backend->plugin.empty(),
        "{}: the backend of a phase is named by its `plugin`, which is looked for "
        "as any other; for a library elsewhere give its folder with --plugin-path.",
        node.origin.text());
  }
  return phase;
}

// The share of the budget that ends a phase, and whether the phase still holds there: in the order of phases.
std::pair<double, bool> last_share(const PhaseEnd& end) {
  return {std::max(end.fraction, end.through_fraction), end.through_fraction > 0};
}

void check_ends(const std::vector<Phase>& phases) {
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const PhaseEnd& end = phases[i].until;
    const bool last = i + 1 == phases.size();
    const std::string next = last ? "" : phases[i + 1].name;
    config_error_if(last && end.any(),
                    "{} is the last one and ends with the budget; leave until_steps, "
                    "until_fraction, through_fraction and until_seconds out.",
                    where(phases[i]));
    config_error_if(
        !last && !end.any(),
        "{} never ends, but '{}' follows it; give it until_steps, until_fraction, through_fraction or "
        "until_seconds.",
        where(phases[i]), next);
    config_error_if(end.fraction > 0 && end.through_fraction > 0,
                    "{} has both until_fraction and through_fraction; say its share of the budget once.",
                    where(phases[i]));
    config_error_if(end.through_fraction == 1,
                    "{} holds through all of the budget, but '{}' follows it; lower its through_fraction.",
                    where(phases[i]), next);
    for (std::size_t j = 0; j < i; ++j) {
      const PhaseEnd& earlier = phases[j].until;
      const bool steps_fall = end.steps > 0 && earlier.steps >= end.steps;
      const bool fractions_fall = last_share(end).first > 0 && last_share(earlier) >= last_share(end);
      const bool seconds_fall = end.seconds > 0 && earlier.seconds >= end.seconds;
      if (steps_fall || fractions_fall || seconds_fall) {
        throw config_error("{} would be over no later than '{}' before it; let the limits grow.",
                           where(phases[i]), phases[j].name);
      }
      if (phases[j].name == phases[i].name)
        throw config_error("{} has the name of an earlier one; name each its own way.", where(phases[i]));
    }
  }
}

void check_orders(const RunConfig& config) {
  for (const Phase& phase : config.phases) {
    if (phase.layer_order != LayerOrderKind::looped || config.model.loop.extra_passes > 0) continue;
    throw config_error(
        "{} has layer_order = \"looped\", but model.loop.extra_passes is 0, so nothing loops; set it, or take "
        "\"plain\".",
        where(phase));
  }
  const Phase& last = config.phases.back();
  if (last.layer_order == scored_order(config.model)) return;
  throw config_error(
      "{}: the last phase, '{}', has layer_order = \"plain\", but a model with model.loop.extra_passes "
      "= {} is scored looped; train its last phase looped, or set model.loop.extra_passes = 0.",
      last.origin.text(), last.name, config.model.loop.extra_passes);
}

// A schedule that ended with its phase cannot go on.
void check_schedules(const std::vector<Phase>& phases) {
  for (std::size_t i = 1; i < phases.size(); ++i) {
    if (phases[i].lr_policy != LrPolicy::continued || phases[i - 1].lr_policy != LrPolicy::independent) {
      continue;
    }
    throw config_error(
        "{} has lr_policy = \"continue\", but the schedule of '{}' before it was its own and "
        "has ended; say \"rejoin\" for the run's schedule at the run's step, or \"independent\".",
        where(phases[i]), phases[i - 1].name);
  }
}

// The 16-bit format of the weights that kernels read in a phase; fp32 where there is none.
std::string_view narrow_word(const Phase& phase) {
  return phase.layercast == LayerCast::off ? word_of(phase.compute_dtype) : word_of(phase.layercast);
}

// A parameter has one copy besides its master, of one 16-bit format for all phases.
void check_formats(const std::vector<Phase>& phases) {
  const Phase* first = nullptr;
  for (const Phase& phase : phases) {
    if (narrow_word(phase) == word_of(MLG_F32)) continue;
    if (first == nullptr) first = &phase;
    if (narrow_word(*first) == narrow_word(phase)) continue;
    throw config_error(
        "{} has weights in {}, but the phase '{}' in {}, and a run keeps them in one 16-bit "
        "format; take the same in both.",
        where(phase), narrow_word(phase), first->name, narrow_word(*first));
  }
}

void check_mixes(const RunConfig& config) {
  for (const Phase& phase : config.phases) {
    config_error_if(phase.mix_weights.size() != config.data.mix.size(),
                    "{} has {} mix_weights, but there are {} rows [[data.mix]].", where(phase),
                    phase.mix_weights.size(), config.data.mix.size());
    const auto positive = [](double weight) { return weight > 0; };
    config_error_if(!phase.mix_weights.empty() && std::ranges::none_of(phase.mix_weights, positive),
                    "{}: all mix_weights of the phase '{}' are 0, so it would read nothing; raise one.",
                    phase.origin.text(), phase.name);
  }
}

// A budget is spent by the clock or by counting, and counted to an end that can be walked to.
void check_step_seconds(const RunConfig& config) {
  constexpr double most_steps = 1e8;
  if (std::ranges::all_of(config.phases, [](const Phase& phase) { return phase.step_seconds == 0; })) return;
  for (const Phase& phase : config.phases) {
    config_error_if(
        phase.step_seconds == 0,
        "{} has no step_seconds, but another phase has; a budget is counted in all phases or in none.",
        where(phase));
    config_error_if(config.train.budget_seconds == 0,
                    "{} has step_seconds, which spend a budget; set train.budget_seconds.", where(phase));
    config_error_if(
        config.train.budget_seconds / phase.step_seconds > most_steps,
        "{} has step_seconds = {}, more than {:.0e} steps of train.budget_seconds = {}; raise it.",
        where(phase), phase.step_seconds, most_steps, config.train.budget_seconds);
  }
}

}  // namespace

void read_phases(const ConfigNode& tree, LoadedConfig& loaded) {
  RunConfig& config = loaded.config;
  const ConfigNode* list = find_rows(tree, "phase");
  if (list == nullptr) {
    config.phases = phases_of_model(config);
    check_layercast(config.phases.front(), loaded.core.where("train.layercast"));
    return;
  }
  config_error_if(config.model.loop.start_fraction > 0,
                  "{}: both model.loop.start_fraction = {} and the [[phase]] rows say "
                  "when depth recurrence starts; leave model.loop.start_fraction out.",
                  list->rows.front().origin.text(), config.model.loop.start_fraction);
  for (const ConfigNode& node : list->rows) {
    config.phases.push_back(read_phase(node, config.phases.size() + 1, loaded));
  }
  check_ends(config.phases);
  check_orders(config);
  check_schedules(config.phases);
  check_formats(config.phases);
  check_mixes(config);
  check_step_seconds(config);
}

std::size_t phase_at(const std::vector<Phase>& phases, std::size_t phase, std::int64_t steps_done,
                     double budget_fraction, double elapsed_seconds) {
  while (phase + 1 < phases.size() &&
         phases[phase].until.reached(steps_done, budget_fraction, elapsed_seconds)) {
    ++phase;
  }
  return phase;
}

std::string phase_text(const Phase& phase) {
  const std::string stored = phase.layercast == LayerCast::off
                                 ? ""
                                 : fmt::format(" with projections in {}", word_of(phase.layercast));
  return fmt::format("{}, {}{}, segments of {} tokens{}", word_of(phase.layer_order),
                     word_of(phase.compute_dtype), stored, phase.sequence_length,
                     phase.backend ? fmt::format(", backend {}", phase.backend->plugin) : "");
}

}  // namespace mulligan
