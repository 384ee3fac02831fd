// mulligan quantize
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "framework/artifact/artifact_run.h"
#include "framework/artifact/evaluation_source.h"
#include "framework/report/run_directory.h"
#include "launch/built_from.h"
#include "launch/commands/commands.h"
#include "launch/commands/run_options.h"
#include "launch/commands/trial.h"
#include "launch/program_parts.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

struct QuantizeArguments {
  RunOptions run;
  ConsoleOptions console;
  std::string path;  // run directory, weights file or, for the dry run, configuration
  std::string output;
  std::string source, code;
  bool dry_run = false;
};

fs::path folder_of(const fs::path& path) {
  return fs::is_directory(path) ? path : path.parent_path();
}

std::string configuration_of(const QuantizeArguments& arguments) {
  const bool is_config = arguments.run.config.empty() && fs::path(arguments.path).extension() == ".toml";
  return is_config ? arguments.path
                   : configuration_of(arguments.run, folder_of(arguments.path), arguments.path);
}

void run(const QuantizeArguments& arguments) {
  require_one_process("quantize");
  PluginHost host = arguments.run.plugin_host();
  LoadedConfig loaded = load_config(configuration_of(arguments), arguments.run.overrides);
  QuantizeRunOptions options;
  static_cast<ConsoleOptions&>(options) = arguments.console;
  options.count_code = true;
  options.source = arguments.source;
  options.built_from = built_from();
  if (!arguments.code.empty()) {
    const ScoringCode scoring = scoring_code(loaded, host);
    const fs::path tree = arguments.source.empty() ? "." : arguments.source;
    write_evaluation(packed_evaluation(tree, evaluation_source(tree, scoring.plugins)), arguments.code);
  }
  if (arguments.dry_run) {
    fmt::print("{}", predict_artifact(loaded, host, options));
    return;
  }
  const fs::path path = arguments.path;
  const fs::path weights = fs::is_directory(path) ? path / "weights.safetensors" : path;
  if (weights.extension() == ".toml" || !fs::exists(weights)) {
    throw data_error(
        "'{}' holds no weights; give the directory of a finished run, or --dry-run for a prediction.",
        arguments.path);
  }
  options.output =
      arguments.output.empty() ? RunFiles{folder_of(path)}.artifact() : fs::path(arguments.output);
  // An artifact put elsewhere is not the run's.
  const fs::path run = run_directory_of(weights);
  if (!run.empty() &&
      fs::weakly_canonical(options.output) == fs::weakly_canonical(RunFiles{folder_of(path)}.artifact())) {
    options.result = RunFiles{run}.quantize_result();
  }
  quantize_weights(loaded, host, weights, options);
  if (!options.result.empty()) refresh_report(run, arguments.console);
}

}  // namespace

void add_quantize_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("quantize", "Makes the artifact of a run and shows where its bytes go");
  auto arguments = std::make_shared<QuantizeArguments>();
  command
      ->add_option("path", arguments->path,
                   "Run directory, weights file (.safetensors) or, with --dry-run, configuration (TOML)")
      ->required()
      ->type_name("PATH");
  arguments->run.declare_config(*command);
  command
      ->add_option("--output", arguments->output,
                   "Artifact; without it artifact.mulligan in the run directory")
      ->type_name("FILE");
  command
      ->add_option("--source", arguments->source,
                   "Source tree whose code is counted; without it the current folder")
      ->type_name("DIR");
  command
      ->add_option(
          "--code", arguments->code,
          "Folder for what is counted as code: the files of an evaluation, packed, and what unpacks them; it must not exist")
      ->type_name("FOLDER");
  command->add_flag("--dry-run", arguments->dry_run,
                    "Predict the sizes from shapes and formats; needs no weights");
  arguments->run.declare(*command);
  declare_quiet(*command, arguments->console);
  command->callback([arguments] { run(*arguments); });
}

}  // namespace mulligan
