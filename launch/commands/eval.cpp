// mulligan eval
#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "framework/artifact/artifact_run.h"
#include "launch/commands/commands.h"
#include "launch/commands/run_options.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

struct EvalArguments {
  RunOptions run;
  std::string path;  // artifact, run directory or weights file
};

// A run directory brings both weights and configuration; beside a weights file lies the configuration of its
// run.
void run(EvalArguments& arguments) {
  const fs::path path = arguments.path;
  if (!fs::exists(path)) {
    throw data_error("'{}' does not exist; give an artifact, a run directory or a weights file.",
                     arguments.path);
  }
  const bool directory = fs::is_directory(path);
  if (!directory && is_artifact(path)) {
    if (!arguments.run.config.empty()) {
      throw config_error(
          "an artifact brings its own configuration; change keys with --set instead of --config.");
    }
    PluginHost host = arguments.run.plugin_host();
    evaluate_artifact(path, arguments.run.overrides, host);
    return;
  }
  const fs::path weights = directory ? path / "weights.safetensors" : path;
  const fs::path folder = directory ? path : path.parent_path();
  if (!fs::exists(weights)) {
    throw data_error("'{}' holds no weights.safetensors, so the run has not finished; train it first.",
                     arguments.path);
  }
  if (arguments.run.config.empty()) {
    const fs::path beside = folder / "config.toml";
    if (!fs::exists(beside)) {
      throw config_error("there is no config.toml beside '{}'; name the configuration with --config.",
                         arguments.path);
    }
    arguments.run.config = beside.string();
  }
  PluginHost host = arguments.run.plugin_host();
  LoadedConfig loaded = load_run_config(arguments.run.config, arguments.run.overrides);
  evaluate_weights(loaded, host, weights);
}

}  // namespace

void add_eval_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("eval", "Scores weights on the validation shards in bits per byte");
  auto arguments = std::make_shared<EvalArguments>();
  command->add_option("path", arguments->path, "Artifact, run directory or weights file (.safetensors)")
      ->required()
      ->type_name("PATH");
  command->add_option("--config", arguments->run.config, "Configuration; without it the run's own")
      ->type_name("FILE");
  arguments->run.declare(*command);
  command->callback([arguments] { run(*arguments); });
}

}  // namespace mulligan
