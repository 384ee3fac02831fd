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
  bool dry_run = false;
  std::string card;  // of the dry run's roofline estimate
};

void run(const TrainArguments& arguments) {
  PluginHost host = arguments.run.plugin_host();
  LoadedConfig loaded = load_run_config(arguments.run.config, arguments.run.overrides);
  if (arguments.dry_run) {
    print_plan(loaded, host, arguments.card);
  } else {
    train(loaded, host, arguments.train);
  }
}

}  // namespace

void add_train_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("train", "Trains and scores as a configuration says");
  auto arguments = std::make_shared<TrainArguments>();
  command->add_option("config", arguments->run.config, "Configuration (TOML)")->required()->type_name("FILE");
  arguments->run.declare(*command);
  command->add_flag("--overwrite", arguments->train.overwrite, "Replace a finished run in the run directory");
  CLI::Option* dry_run =
      command->add_flag("--dry-run", arguments->dry_run,
                        "Print parameters, memory, FLOPs and bytes per step; needs neither data nor device");
  command
      ->add_option("--card", arguments->card, "Device of the dry run's roofline estimate, for example h100")
      ->needs(dry_run)
      ->type_name("NAME");
  command->callback([arguments] { run(*arguments); });
}

}  // namespace mulligan
