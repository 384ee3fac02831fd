// mulligan probe ensemble
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <optional>

#include "framework/core/directory_lock.h"
#include "framework/core/file.h"
#include "framework/report/run_directory.h"
#include "framework/run/replaced_run.h"
#include "lab/commands/lab_commands.h"
#include "lab/ensemble/ensemble_text.h"
#include "launch/commands/refresh_report.h"
#include "launch/commands/run_options.h"
#include "launch/commands/run_results.h"
#include "launch/commands/trial.h"
#include "launch/commands/weight_source.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

struct EnsembleArguments {
  RunOptions run;
  std::string path;  // artifact, run directory or weights file
  ensemble::ScoreOptions score;
  std::string json;
};

void run(EnsembleArguments arguments) {
  require_one_process("probe ensemble");
  const fs::path directory = run_directory_of(arguments.path);
  std::optional<DirectoryLock> lock;
  if (!directory.empty()) {
    lock.emplace(directory, "probe ensemble", DirectoryLock::Kind::shared);
    remove_temporary_leftovers(directory);
  }
  // A configuration without [ensemble] means its defaults; what the user sets comes behind it.
  if (!open_weights(arguments.path, arguments.run).loaded.config.ensemble) {
    arguments.run.overrides.insert(arguments.run.overrides.begin(), "ensemble.plugin=stochastic_rounding");
  }
  WeightSource source = open_weights(arguments.path, arguments.run);
  PluginHost host = arguments.run.plugin_host();
  std::vector<TrialRecord::Change> changes;
  if (!directory.empty())
    changes = changes_from_run(directory, arguments.path, source.loaded, source.origin, ScoreCommand::eval);
  const ensemble::EnsembleScore score =
      ensemble::score_ensemble(source.loaded, host, source.origin, source.load, arguments.score);
  fmt::print("{}", ensemble::ensemble_text(score));
  const std::string json = ensemble::ensemble_json(score, weights_of(arguments.path).filename().string());
  if (!arguments.json.empty()) write_file_atomically(arguments.json, json);
  if (directory.empty()) return;
  if (!changes.empty()) {  // other settings than the run's: not the run's own figures
    if (!arguments.score.quiet)
      fmt::print("not kept in the run directory, because of {}\n", changed_keys(changes));
    return;
  }
  write_file_atomically(RunFiles{directory}.ensemble(), json);
  refresh_report(directory, arguments.score);
}

}  // namespace

void add_probe_ensemble(CLI::App& probe) {
  CLI::App* command = probe.add_subcommand(
      "ensemble", "Scores several models made of one by rounding its weights, their probabilities averaged");
  auto arguments = std::make_shared<EnsembleArguments>();
  command->add_option("path", arguments->path, "Artifact, run directory or weights file (.safetensors)")
      ->required()
      ->type_name("PATH");
  command->add_option("--config", arguments->run.config, "Configuration; without it the run's own")
      ->type_name("FILE");
  command->add_option("--tokens", arguments->score.tokens, "Validation tokens to score, from the front")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40))
      ->capture_default_str();
  command->add_option("--json", arguments->json, "File that the figures are written to")->type_name("FILE");
  arguments->run.declare(*command);
  declare_quiet(*command, arguments->score);
  command->callback([arguments] { run(*arguments); });
}

}  // namespace mulligan
