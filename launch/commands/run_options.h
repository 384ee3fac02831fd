// The options that every command with a configuration shares.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "framework/config/run_config.h"
#include "framework/plugin/plugin_host.h"
#include "framework/report/console.h"

namespace CLI {
class App;
}

namespace mulligan {

class RunRanks;

// Declares --quiet for a command that takes long or writes many lines.
void declare_quiet(CLI::App& command, ConsoleOptions& options);

struct RunOptions {
  std::string config;                     // TOML file
  std::vector<std::string> overrides;     // --set
  std::vector<SettingsFrom> more;         // of other options, after them
  std::vector<std::string> plugin_paths;  // --plugin-path

  // Declares --set and --plugin-path. The command declares its own positional for `config`, or one of these.
  void declare(CLI::App& command);
  void declare_config(CLI::App& command);  // --config, for weights that bring a configuration
  void declare_weights(CLI::App& command,
                       std::string& path);  // that, and the argument that names the weights
  PluginHost plugin_host() const { return PluginHost(plugin_places(plugin_paths)); }
};

// Declares --launcher for a command that several ranks can share (find_launch).
void declare_launcher(CLI::App& command, std::string& launcher);

// Does `work` as one of the ranks of the environment or `launcher`, and obeys stop signals (RunRanks::run).
void share_among_ranks(const std::string& launcher, const std::function<void(RunRanks&)>& work);
// Ranks other than the first show nothing.
ConsoleOptions console_of(RunRanks& ranks, ConsoleOptions console);

// For a command of one process: throws config_error if a launcher has started this process as one of several ranks.
void require_one_process(const char* command);

// Reads a configuration (load_run_config) and names on stderr those of its paths that were not followed.
LoadedConfig load_config(const std::string& path, const std::vector<std::string>& overrides,
                         const std::vector<SettingsFrom>& more = {});
void tell_notes(const LoadedConfig& loaded);

// Reads a configuration and resolves every plugin's keys with the plugins of `host`. Throws config_error.
LoadedConfig load_complete_config(const std::string& path, const std::vector<std::string>& overrides,
                                  PluginHost& host);

}  // namespace mulligan
