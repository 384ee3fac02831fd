// mulligan doctor
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/printable.h"
#include "framework/report/run_directory.h"
#include "framework/run/run_plugins.h"
#include "framework/run/weights.h"
#include "launch/commands/commands.h"
#include "launch/commands/run_options.h"
#include "tools/doctor/examine.h"
#include "tools/doctor/outcome_checks.h"

namespace mulligan {
namespace {

struct DoctorArguments {
  RunOptions run;
  doctor::Examination examination;
  std::string weights, json;
  bool allow_skip = false;
};

std::vector<doctor::Finding> findings_of(const DoctorArguments& arguments, LoadedConfig& loaded,
                                         PluginHost& host) {
  const std::string weights = arguments.weights.empty() ? loaded.config.init.from : arguments.weights;
  doctor::Examination wanted = arguments.examination;
  if (std::ranges::find(wanted.stages, "load") != wanted.stages.end() && weights.empty())
    throw config_error("--stage load needs weights: name them with --weights, or set init.from.");
  if (!weights.empty()) wanted.weights = weights_file(weights);
  const bool only_loads =
      !wanted.stages.empty() &&
      std::ranges::all_of(wanted.stages, [](const std::string& stage) { return stage == "load"; });
  resolve_run_plugins(loaded, host, only_loads ? PluginUse::score : PluginUse::train);
  return doctor::examine(loaded, host, wanted);
}

// Of a run directory: what the run recorded and had.
std::vector<doctor::Finding> findings_of_run(const DoctorArguments& arguments) {
  if (!arguments.examination.stages.empty() || !arguments.weights.empty() ||
      !arguments.run.overrides.empty()) {
    throw config_error(
        "'{}' is a run directory, whose own findings are read: --stage, --weights and --set are for "
        "configurations; leave them out, or name '{}'.",
        arguments.run.config, RunFiles{arguments.run.config}.config().string());
  }
  const std::string file = RunFiles{arguments.run.config}.config().string();
  if (!std::filesystem::exists(file))
    throw config_error("'{}' is not a run directory: it has no config.toml.", arguments.run.config);
  return doctor::examine_run_directory(arguments.run.config, load_run_config(file).config);
}

void run(const DoctorArguments& arguments) {
  require_one_process("doctor");
  std::vector<doctor::Finding> findings;
  if (std::filesystem::is_directory(arguments.run.config)) {
    findings = findings_of_run(arguments);
  } else {
    PluginHost host = arguments.run.plugin_host();
    LoadedConfig loaded = load_complete_config(arguments.run.config, arguments.run.overrides, host);
    findings = findings_of(arguments, loaded, host);
  }
  fmt::print("{}", printable(doctor::findings_text(findings), LineBreaks::kept));
  if (!arguments.json.empty())
    write_file_atomically(arguments.json, doctor::findings_json(findings).dump(1) + "\n");
  if (doctor::worst(findings) == doctor::CheckOutcome::fail)
    throw run_error("a check of this run failed; see above.");
  const bool skipped =
      std::ranges::any_of(findings, [](const auto& f) { return f.verdict == doctor::CheckOutcome::skip; });
  if (skipped && !arguments.allow_skip)
    throw config_error("a check of this run could not be made; see above, or allow it with --allow-skip.");
}

}  // namespace

void add_doctor_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "doctor", "Checks data, loss, model and training before a run, or the record of a finished one");
  auto arguments = std::make_shared<DoctorArguments>();
  command
      ->add_option("config", arguments->run.config,
                   "Run configuration (TOML), or the directory of a finished run: what it recorded")
      ->required()
      ->type_name("FILE");
  arguments->run.declare(*command);
  command
      ->add_option(
          "--stage", arguments->examination.stages,
          "Only these checks: data, loss, weights, forward, train, load (a weights file, bit by bit); "
          "without it all of them, load where there are weights")
      ->check(CLI::IsMember({"data", "loss", "weights", "forward", "train", "load"}));
  command
      ->add_option("--tokens", arguments->examination.tokens,
                   "Largest number of training and of validation tokens to check")
      ->check(CLI::Range(std::uint64_t{65'536}, std::uint64_t{1} << 36))
      ->capture_default_str();
  command
      ->add_option(
          "--weights", arguments->weights,
          "Weights to check in place of the initial ones: a file, or a folder with model.safetensors; "
          "without it init.from")
      ->type_name("PATH");
  command->add_option("--json", arguments->json, "File that the findings are written to")->type_name("FILE");
  command->add_flag("--allow-skip", arguments->allow_skip,
                    "Exit with code 0 although a check could not be made");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace mulligan
