#include "tools/commands/tool_commands.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <numeric>

#include "framework/core/error.h"
#include "framework/core/printable.h"
#include "framework/step/phase_progress.h"
#include "tools/cost/cost_text.h"
#include "tools/cost/dry_run.h"
#include "tools/cost/prediction.h"

namespace mulligan {
namespace {

struct DryRunArguments {
  bool asked = false;
  std::string card = known_cards().front().name;
  int ranks = 1;
};

// Steps of each phase; empty where a clock ends the run or one of its phases.
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

// "54.1 GB of the card's 80 GB", with a warning where that is more than 90 % of it.
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

// Steps, hours and memory of the whole run on the card that `phases` are of, a line each; ends with a newline.
// Validations, checkpoints and communication between ranks are not in the hours.
std::string format_run_length(const std::vector<std::int64_t>& steps,
                              const std::vector<PredictedPhase>& phases, const DryRunOptions& options,
                              const DryRun& plan) {
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

// Where the configuration says how many steps there are; what has no kernels for a GPU has no hours there.
void print_length(LoadedConfig loaded, PluginHost& host, const DryRunOptions& options, const DryRun& plan) {
  const std::vector<std::int64_t> steps = planned_steps(loaded.config);
  if (steps.empty()) return;
  try {
    fmt::print("\n{}", format_run_length(steps, predict_step(loaded, host, {options}), options, plan));
  } catch (const Error& error) {
    fmt::print("\nhours on {}: not predicted ({})\n", options.card.description, error.what());
  }
}

void print_plan(const DryRunArguments& arguments, const RunOptions& run) {
  PluginHost host = run.plugin_host();
  LoadedConfig loaded = load_config(run.config, run.overrides);
  const DryRunOptions options{find_card(arguments.card), arguments.ranks};
  const DryRun plan = dry_run(loaded, host, options);
  fmt::print("{}", format_dry_run(loaded.config, options, plan));
  // Anew, for the plan has resolved the keys of its plugins.
  print_length(load_config(run.config, run.overrides), host, options, plan);
  if (!loaded.config.ttt) return;
  const TttMemory memory = plan_ttt_memory(loaded, host);
  fmt::print("\n{}memory of test-time training: {}\n", format_ttt_memory(memory),
             memory_of_card(memory.bytes, options.card, "lower ttt.batch_documents"));
  if (static_cast<double>(memory.bytes) > options.card.memory_bytes) {
    throw config_error(
        "test-time training needs {:.1f} GB on a card, but {} has {:.0f} GB; lower ttt.batch_documents, "
        "ttt.context_tokens or the adapters' rank.",
        static_cast<double>(memory.bytes) / 1e9, options.card.description, options.card.memory_bytes / 1e9);
  }
}

}  // namespace

TrainAnswer declare_dry_run(CLI::App& train) {
  auto arguments = std::make_shared<DryRunArguments>();
  CLI::Option* dry_run =
      train.add_flag("--dry-run", arguments->asked,
                     "Print parameters, memory, FLOPs and bytes per step; needs neither data nor device");
  train.add_option("--card", arguments->card, "Device of the dry run's roofline estimate: " + card_names())
      ->needs(dry_run)
      ->type_name("NAME")
      ->capture_default_str();
  train.add_option("--ranks", arguments->ranks, "Ranks of the dry run; memory and cost are those of one")
      ->needs(dry_run)
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  return [arguments](const RunOptions& run) {
    if (arguments->asked) print_plan(*arguments, run);
    return arguments->asked;
  };
}

}  // namespace mulligan
