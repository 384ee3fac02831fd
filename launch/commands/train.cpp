// mulligan train
#include "framework/train/run.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "launch/commands/commands.h"
#include "launch/commands/run_options.h"

namespace mulligan {
namespace {

struct TrainArguments {
  RunOptions run;
  TrainOptions train;
};

void run(const TrainArguments& arguments) {
  PluginHost host = arguments.run.plugin_host();
  LoadedConfig loaded = load_run_config(arguments.run.config, arguments.run.overrides);
  train(loaded, host, arguments.train);
}

}  // namespace

void add_train_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("train", "Trains and scores as a configuration says");
  auto arguments = std::make_shared<TrainArguments>();
  command->add_option("config", arguments->run.config, "Configuration (TOML)")->required()->type_name("FILE");
  arguments->run.declare(*command);
  command->add_flag("--overwrite", arguments->train.overwrite, "Replace a finished run in the run directory");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace mulligan
