#include "tools/cost/run_length.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "framework/core/printable.h"
#include "framework/step/phase_progress.h"
#include "tools/cost/cost_text.h"

namespace mulligan {

std::vector<std::int64_t> planned_steps(const RunConfig& config) {
  if (StepSeconds::counts(config)) return StepSeconds(config).phase_steps();
  const bool by_clock =
      config.train.budget_seconds > 0 ||
      std::ranges::any_of(config.phases, [](const Phase& phase) { return phase.until.seconds > 0; });
  if (by_clock) return {};
  std::vector<std::int64_t> steps(config.phases.size(), 0);
  std::size_t phase = 0;
  for (std::int64_t step = 0; step < config.train.steps; ++step) {
    phase = phase_at(config.phases, phase, step,
                     static_cast<double>(step) / static_cast<double>(config.train.steps));
    ++steps[phase];
  }
  return steps;
}

std::string memory_of_card(std::int64_t bytes, const Card& card, const char* remedy) {
  constexpr double spare = 0.1;
  const double taken = static_cast<double>(bytes) / card.memory_bytes;
  std::string text = fmt::format("{:.1f} GB of the card's {:.0f} GB", static_cast<double>(bytes) / 1e9,
                                 card.memory_bytes / 1e9);
  if (taken > 1) return text + fmt::format(": too little; {}", remedy);
  if (taken > 1 - spare)
    return text + fmt::format(": less than 10 % is left for CUDA's libraries; {}", remedy);
  return text;
}

std::string format_run_length(const RunConfig& config, const std::vector<PredictedPhase>& phases,
                              const DryRunOptions& options, const DryRun& plan) {
  const std::vector<std::int64_t> steps = planned_steps(config);
  if (steps.empty()) return {};
  TextLines text;
  double seconds = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const PredictedPhase& phase = phases[i];
    seconds += static_cast<double>(steps[i]) * phase.total.seconds;
    text.line("  phase {}: {} steps of {:.1f} ms", phase.name, grouped(steps[i]), 1e3 * phase.total.seconds);
  }
  const std::int64_t total = std::accumulate(steps.begin(), steps.end(), std::int64_t{0});
  text.line(
      "the whole run: {} steps, predicted, not measured: {:.2f} hours on {} x {}, without validations "
      "and communication",
      grouped(total), seconds / 3600, options.ranks, options.card.description);
  text.line("memory: {}{}", plan.workspace_bytes ? "" : "the kernels' workspace and ",
            memory_of_card(plan.bytes, options.card, "more micro-batches of fewer tokens need less"));
  return text.take();
}

}  // namespace mulligan
