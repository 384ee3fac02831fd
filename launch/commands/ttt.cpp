// mulligan ttt
#include <CLI/CLI.hpp>
#include <memory>

#include "framework/artifact/artifact_run.h"
#include "framework/ttt/run_ttt.h"
#include "launch/commands/commands.h"
#include "launch/commands/run_results.h"
#include "launch/commands/weight_source.h"

namespace mulligan {
namespace {

struct TttArguments {
  RunOptions run;
  std::string path;    // artifact, run directory or weights file
  std::string output;  // folder
};

void run(const TttArguments& arguments) {
  WeightSource source = open_weights(arguments.path, arguments.run);
  TttOptions options;
  options.quantised = !std::filesystem::is_directory(arguments.path) && is_artifact(arguments.path);
  options.directory = arguments.output;
  const std::filesystem::path run = run_directory_of(arguments.path);
  if (arguments.output.empty()) options.directory = run;
  PluginHost host = arguments.run.plugin_host();
  run_ttt(source.loaded, host, source.origin, source.load, options);
  if (arguments.output.empty()) refresh_report(run);
}

}  // namespace

void add_ttt_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("ttt", "Scores weights with test-time training, as [ttt] says");
  auto arguments = std::make_shared<TttArguments>();
  command->add_option("path", arguments->path, "Artifact, run directory or weights file (.safetensors)")
      ->required()
      ->type_name("PATH");
  command->add_option("--config", arguments->run.config, "Configuration; without it the run's own")
      ->type_name("FILE");
  command
      ->add_option("--output", arguments->output,
                   "Folder for ttt_result.json and the audit log; without it the run directory that PATH is "
                   "or lies in")
      ->type_name("FOLDER");
  arguments->run.declare(*command);
  command->callback([arguments] { run(*arguments); });
}

}  // namespace mulligan
