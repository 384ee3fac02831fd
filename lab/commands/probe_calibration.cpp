// mulligan probe calibration, mulligan probe consistency
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/printable.h"
#include "framework/report/run_directory.h"
#include "lab/calibration/answer.h"
#include "lab/calibration/compare_items.h"
#include "lab/commands/lab_commands.h"
#include "launch/commands/run_options.h"
#include "launch/commands/trial.h"
#include "launch/commands/weight_source.h"
#include "tools/report_page/run_sections.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

struct CalibrateArguments {
  RunOptions run;
  std::string path;  // artifact, run directory or weights file
  calibration::AnswerOptions answers;
  std::vector<std::string> questions;
  std::string items, json;
};

struct CompareArguments {
  std::vector<std::string> files;
  calibration::RiskLimits limits;
  std::string json;
};

void run(CalibrateArguments arguments) {
  require_one_process("probe calibration");
  if (arguments.answers.tokens == 0 && arguments.questions.empty())
    throw config_error(
        "--tokens 0 without --questions leaves nothing to calibrate on; name a file of questions.");
  arguments.answers.questions.assign(arguments.questions.begin(), arguments.questions.end());
  OpenedScore opened =
      open_for_score(run_directory_of(arguments.path), arguments.path, arguments.run, "probe calibration");
  const std::vector<calibration::ItemSet> sets = calibration::answer(
      opened.source.loaded, opened.host, opened.source.origin, opened.source.load, arguments.answers);
  const std::string json =
      calibration::calibration_json(sets, weights_of(arguments.path).filename().string());
  const auto result = report::ResultValue::of(nlohmann::ordered_json::parse(json));
  fmt::print("{}", printable(report::calibration_table(result).text(), LineBreaks::kept));
  if (!arguments.items.empty()) write_file_atomically(arguments.items, calibration::items_text(sets));
  if (!arguments.json.empty()) write_file_atomically(arguments.json, json);
  keep_in_run(opened, RunFiles{opened.run}.calibration(), json, arguments.answers);
}

void compare(const CompareArguments& arguments) {
  std::vector<std::vector<calibration::ItemSet>> runs;
  for (const std::string& file : arguments.files) runs.push_back(calibration::read_items(file));
  const std::vector<calibration::SetComparison> sets = calibration::compare_items(runs, arguments.limits);
  fmt::print("{}", printable(calibration::comparison_text(sets, arguments.files), LineBreaks::kept));
  if (!arguments.json.empty())
    write_file_atomically(arguments.json, calibration::comparison_json(sets, arguments.files));
}

}  // namespace

void add_probe_consistency(CLI::App& probe) {
  CLI::App* command = probe.add_subcommand(
      "consistency", "Consistency of runs on the same items, McNemar's test by subject, items at risk");
  auto arguments = std::make_shared<CompareArguments>();
  command
      ->add_option(
          "items", arguments->files,
          "Files of probe calibration --items, two or more; the first is what others are held against")
      ->required()
      ->type_name("FILE");
  const auto share = [&](const char* name, double& value, const char* what) {
    command->add_option(name, value, what)->check(CLI::Range(0.0, 1.0))->capture_default_str();
  };
  share("--risk-consistency", arguments->limits.consistency,
        "An item is at risk if at least this share of the runs agrees");
  share("--risk-confidence", arguments->limits.confidence, "and their mean confidence is at least this");
  share("--risk-ece", arguments->limits.ece, "and the calibration error of its subject is at least this");
  command->add_option("--json", arguments->json, "File that the figures are written to")->type_name("FILE");
  command->callback([arguments] { compare(*arguments); });
}

void add_probe_calibration(CLI::App& probe) {
  CLI::App* command = probe.add_subcommand(
      "calibration",
      "Measures the calibration of a model's confidence, on next tokens and on multiple-choice "
      "questions");
  auto arguments = std::make_shared<CalibrateArguments>();
  arguments->run.declare_weights(*command, arguments->path);
  command
      ->add_option("--tokens", arguments->answers.tokens,
                   "Validation tokens to predict, from the front; 0: none")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 40))
      ->capture_default_str();
  command
      ->add_option("--questions", arguments->questions,
                   "File of JSON lines with question, choices, answer, subject and id; may be repeated")
      ->allow_extra_args(false)
      ->type_name("FILE");
  command->add_flag("--per-byte", arguments->answers.per_byte,
                    "Likelihoods of choices count per byte of their text");
  command
      ->add_option("--items", arguments->items, "File that every answer is written to, for probe consistency")
      ->type_name("FILE");
  command->add_option("--json", arguments->json, "File that the figures are written to")->type_name("FILE");
  arguments->run.declare(*command);
  declare_quiet(*command, arguments->answers);
  command->callback([arguments] { run(*arguments); });
}

}  // namespace mulligan
