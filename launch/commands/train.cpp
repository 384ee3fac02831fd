// mulligan train
#include "framework/train/train.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "framework/core/error.h"
#include "framework/core/stop_request.h"
#include "framework/run/run_ranks.h"
#include "launch/commands/commands.h"
#include "launch/commands/run_options.h"
#include "launch/program_parts.h"

namespace mulligan {
namespace {

struct TrainArguments {
  RunOptions run;
  TrainOptions train;
  bool force = false;
  std::vector<TrainAnswer> answers;
  std::string launcher;
};

// Of several ranks each makes one micro-batch of a step, where the configuration says nothing else.
LoadedConfig load_for(RunRanks& ranks, const RunOptions& options) {
  LoadedConfig loaded = load_config(options.config, options.overrides);
  const bool said = loaded.core.at("train.micro_batches").origin.kind != Origin::Kind::defaulted;
  if (ranks.alone() || said) return loaded;
  return load_config(options.config, options.overrides, {for_ranks(ranks.group().world_size())});
}

void run(const TrainArguments& arguments) {
  for (const TrainAnswer& answer : arguments.answers) {
    if (answer(arguments.run)) return;
  }
  const StopSignals signals;
  RunRanks ranks(arguments.launcher, [](const std::string& line) { fmt::print(stderr, "{}\n", line); });
  TrainOptions options = arguments.train;
  options.observers = program_parts().training_observers(arguments.force);
  if (!ranks.first()) options.console = nullptr;
  std::string directory;  // once it is known
  const auto report = [&] {
    if (ranks.first() && !directory.empty()) refresh_report(directory, options);
  };
  try {
    ranks.run([&] {
      PluginHost host = arguments.run.plugin_host();
      LoadedConfig loaded = load_for(ranks, arguments.run);
      directory = loaded.config.run.directory;
      if (const auto& require = program_parts().require_strict_start; require && ranks.first())
        require(loaded, host, ranks.group().world_size());
      train(loaded, host, options, ranks);
    });
  } catch (const Error& error) {
    // A run that failed or was stopped has a story, too; one that was refused has not begun.
    if (error.code() != ExitCode::bad_configuration && error.code() != ExitCode::bad_data) report();
    throw;
  }
  report();
}

}  // namespace

void add_train_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("train", "Trains and scores as a configuration says");
  auto arguments = std::make_shared<TrainArguments>();
  command->add_option("config", arguments->run.config, "Configuration (TOML)")->required()->type_name("FILE");
  arguments->run.declare(*command);
  command->add_flag("--overwrite", arguments->train.overwrite, "Replace a finished run in the run directory");
  command
      ->add_option("--resume", arguments->train.resume,
                   "Continue from the run's newest checkpoint, or from PATH, a checkpoint or a run directory")
      ->expected(0, 1)
      ->default_str("auto")
      ->type_name("PATH");
  command->add_flag("--force", arguments->force,
                    "Start although a check of the doctor fails (doctor.level); result.json records it");
  for (const auto& declare : program_parts().train_answers) arguments->answers.push_back(declare(*command));
  declare_launcher(*command, arguments->launcher);
  declare_quiet(*command, arguments->train);
  command->callback([arguments] { run(*arguments); });
}

}  // namespace mulligan
