// mulligan sweep
#include "framework/ttt/sweep.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "launch/commands/commands.h"
#include "launch/commands/run_options.h"

namespace mulligan {
namespace {

void run(const RunOptions& options) {
  const Sweep sweep = read_sweep(options.config);
  PluginHost host = options.plugin_host();
  const SweepResult result = run_sweep(sweep, options.overrides, host);
  fmt::print("\n{}", sweep_table(sweep, result));
}

}  // namespace

void add_sweep_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("sweep", "Trains and scores variants of a configuration over several seeds");
  auto options = std::make_shared<RunOptions>();
  command->add_option("sweep", options->config, "Sweep (TOML): config, directory, seeds and [[rows]]")
      ->required()
      ->type_name("FILE");
  options->declare(*command);
  command->callback([options] { run(*options); });
}

}  // namespace mulligan
