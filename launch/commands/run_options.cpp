#include "launch/commands/run_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include "framework/core/error.h"
#include "framework/core/stop_request.h"
#include "framework/ranks/launch_environment.h"
#include "framework/run/run_plugins.h"
#include "framework/run/run_ranks.h"
#include "launch/commands/commands.h"
#include "launch/parse_sentence.h"

namespace mulligan {

void RunOptions::declare(CLI::App& command) {
  command
      .add_option("--set", overrides, "Overrides one key, for example --set train.steps=100; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command
      .add_option("--plugin-path", plugin_paths,
                  "Folder or library to look for plugins in, before MULLIGAN_PLUGIN_PATH; may be repeated")
      ->type_name("PATH")
      ->allow_extra_args(false);
}

void RunOptions::declare_config(CLI::App& command) {
  command.add_option("--config", config, "Configuration; without it the run's own")->type_name("FILE");
}

void RunOptions::declare_weights(CLI::App& command, std::string& path) {
  command.add_option("path", path, "Artifact, run directory or weights file (.safetensors)")
      ->required()
      ->type_name("PATH");
  declare_config(command);
}

void declare_quiet(CLI::App& command, ConsoleOptions& options) {
  command.add_flag("--quiet", options.quiet, "Print the result, warnings and errors only; no progress");
}

void declare_launcher(CLI::App& command, std::string& launcher) {
  command
      .add_option("--launcher", launcher,
                  "What started the ranks of this run, in place of what the "
                  "environment says: torchrun, env, openmpi, hydra, slurm or none")
      ->type_name("NAME");
}

void share_among_ranks(const std::string& launcher, const std::function<void(RunRanks&)>& work) {
  const StopSignals signals;
  RunRanks ranks(launcher, [](const std::string& line) { fmt::print(stderr, "{}\n", line); });
  ranks.run([&] { work(ranks); });
}

ConsoleOptions console_of(RunRanks& ranks, ConsoleOptions console) {
  if (!ranks.first()) console.console = nullptr;
  return console;
}

void require_one_process(const char* command) {
  const LaunchEnvironment environment = find_launch(process_environment());
  if (environment.world_size == 1) return;
  throw config_error(
      "'mulligan {}' is the work of one process, and {} has started "
      "{} of it; start it without a launcher, or with one rank.",
      command, environment.launcher, environment.world_size);
}

void require_command(const CLI::App& parent) {
  if (!parent.get_subcommands().empty()) return;
  throw config_error("name a command after '{}': {}.", parent.get_name(),
                     fmt::join(command_names(parent), ", "));
}

void tell_notes(const LoadedConfig& loaded) {
  for (const std::string& note : loaded.notes) fmt::print(stderr, "note: {}\n", note);
}

LoadedConfig load_config(const std::string& path, const std::vector<std::string>& overrides,
                         const std::vector<SettingsFrom>& more) {
  LoadedConfig loaded = load_run_config(path, overrides, more);
  tell_notes(loaded);
  return loaded;
}

LoadedConfig load_complete_config(const std::string& path, const std::vector<std::string>& overrides,
                                  PluginHost& host) {
  LoadedConfig loaded = load_config(path, overrides);
  resolve_run_plugins(loaded, host);
  return loaded;
}

}  // namespace mulligan
