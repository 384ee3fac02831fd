// mulligan config print|check|diff|model|docs; init: config_init.cpp
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "framework/checkpoint/qwen2_config.h"
#include "framework/config/config_report.h"
#include "framework/config/run_config.h"
#include "framework/model/parameters.h"
#include "launch/commands/commands.h"
#include "launch/commands/run_options.h"
#include "tools/commands/tool_commands.h"
#include "tools/cost/dry_run.h"

namespace mulligan {
namespace {

struct DiffOptions {
  RunOptions run;
  std::string other;
};

void print_config(const RunOptions& options) {
  PluginHost host = options.plugin_host();
  fmt::print("{}", print_resolved(load_complete_config(options.config, options.overrides, host)));
}

// Everything that can be known without data: keys, plugins and their keys, the parameter table, and by building
// every program of the run where nothing is computed what `train` would refuse.
void check_config(const RunOptions& options) {
  PluginHost host = options.plugin_host();
  const LoadedConfig loaded = load_complete_config(options.config, options.overrides, host);
  const std::vector<ParameterSpec> parameters = model_parameters(loaded.config.model);
  std::vector<std::string> names;
  for (const ParameterSpec& parameter : parameters) names.push_back(parameter.name);
  resolve_parameter_table(names, loaded.config.parameters);
  LoadedConfig rehearsed = load_config(options.config, options.overrides);
  static_cast<void>(dry_run(rehearsed, host));
  fmt::print("{}: ok, {} parameters in {} tensors, {} plugins\n", options.config, parameter_count(parameters),
             parameters.size(), host.loaded().size());
}

void diff(const DiffOptions& options) {
  PluginHost host = options.run.plugin_host();
  const LoadedConfig left = load_complete_config(options.run.config, options.run.overrides, host);
  const LoadedConfig right = load_complete_config(options.other, options.run.overrides, host);
  fmt::print("{}", format_differences(diff_configs(left, right)));
}

// The [model] table of a folder of another trainer's.
void print_published_model(const std::string& path) {
  const std::filesystem::path file = std::filesystem::is_directory(path)
                                         ? std::filesystem::path(path) / "config.json"
                                         : std::filesystem::path(path);
  fmt::print("{}", model_table_text(read_qwen2_config(file).model));
}

CLI::App* add_with_config(CLI::App& parent, const std::string& name, const std::string& about,
                          RunOptions& options) {
  CLI::App* command = parent.add_subcommand(name, about);
  command->add_option("config", options.config, "Configuration (TOML)")->required()->type_name("FILE");
  options.declare(*command);
  return command;
}

}  // namespace

void add_config_command(CLI::App& app) {
  CLI::App* config = app.add_subcommand("config", "Starts, prints, checks and compares configurations");
  config->callback([config] { require_command(*config); });

  add_config_init_command(*config);
  auto options = std::make_shared<DiffOptions>();
  add_with_config(*config, "print", "Prints every resolved key with its origin", options->run)
      ->callback([options] { print_config(options->run); });
  add_with_config(*config, "check", "Checks a configuration, its plugins and its parameter table",
                  options->run)
      ->callback([options] { check_config(options->run); });
  CLI::App* compare =
      add_with_config(*config, "diff", "Prints the keys in which two configurations differ", options->run);
  compare->add_option("other", options->other, "Configuration to compare with")
      ->required()
      ->type_name("FILE");
  compare->callback([options] { diff(*options); });
  auto published = std::make_shared<std::string>();
  CLI::App* model = config->add_subcommand(
      "model", "Prints the [model] table for the config.json of a published Qwen2 model");
  model->add_option("path", *published, "Folder with config.json, or that file")
      ->required()
      ->type_name("PATH");
  model->callback([published] { print_published_model(*published); });
  config->add_subcommand("docs", "Prints the reference of all core keys (docs/configuration.md)")
      ->callback([] { fmt::print("{}", write_reference()); });
}

}  // namespace mulligan
