// mulligan probe ensemble
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "framework/core/file.h"
#include "framework/report/run_directory.h"
#include "lab/commands/lab_commands.h"
#include "lab/ensemble/score_ensemble.h"
#include "launch/commands/run_options.h"
#include "launch/commands/trial.h"
#include "launch/commands/weight_source.h"
#include "tools/report_page/run_sections.h"

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
  // Without [ensemble] its defaults apply; --set comes after them.
  if (!open_weights(arguments.path, arguments.run).loaded.config.ensemble) {
    arguments.run.overrides.insert(arguments.run.overrides.begin(), "ensemble.plugin=stochastic_rounding");
  }
  OpenedScore opened =
      open_for_score(run_directory_of(arguments.path), arguments.path, arguments.run, "probe ensemble");
  const ensemble::EnsembleScore score = ensemble::score_ensemble(
      opened.source.loaded, opened.host, opened.source.origin, opened.source.load, arguments.score);
  const std::string json = ensemble::ensemble_json(score, weights_of(arguments.path).filename().string());
  const auto result = report::ResultValue::of(nlohmann::ordered_json::parse(json));
  fmt::print("{}{}", report::ensemble_table(result).text(), ensemble::ensemble_text(score));
  if (!arguments.json.empty()) write_file_atomically(arguments.json, json);
  keep_in_run(opened, RunFiles{opened.run}.ensemble(), json, arguments.score);
}

}  // namespace

void add_probe_ensemble(CLI::App& probe) {
  CLI::App* command =
      probe.add_subcommand("ensemble",
                           "Scores an ensemble: models made from one by rounding its weights, with averaged "
                           "probabilities");
  auto arguments = std::make_shared<EnsembleArguments>();
  arguments->run.declare_weights(*command, arguments->path);
  command->add_option("--tokens", arguments->score.tokens, "Validation tokens to score, from the front")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40))
      ->capture_default_str();
  command->add_option("--json", arguments->json, "File that the figures are written to")->type_name("FILE");
  arguments->run.declare(*command);
  declare_quiet(*command, arguments->score);
  command->callback([arguments] { run(*arguments); });
}

}  // namespace mulligan
