// mulligan plugins [NAME] [--json], mulligan plugins check NAME|FILE; plugins kernels lies in kernels.cpp
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "framework/check/plugin_check.h"
#include "framework/core/error.h"
#include "framework/plugin/plugin_listing.h"
#include "launch/commands/commands.h"
#include "launch/commands/run_options.h"

namespace mulligan {
namespace {

struct PluginsOptions {
  std::string name;
  bool json = false;
  std::vector<std::string> plugin_paths;
};

struct CheckOptions {
  std::string name;
  std::vector<std::string> overrides;
  CheckBackend backend;
};

// One line per check; bad_configuration where any fails.
void check(const PluginsOptions& places, const CheckOptions& options) {
  PluginHost host(plugin_places(places.plugin_paths));
  std::size_t failed = 0, all = 0;
  for (const PluginHandle& plugin : plugins_to_check(host, options.name)) {
    fmt::print("{}\n", plugin->description());
    std::fflush(stdout);  // said before a plugin crashes
    const CheckList list = check_plugin(host, plugin, options.overrides, options.backend);
    for (const CheckLine& line : list.lines()) {
      ++all;
      if (!line.problem.empty()) ++failed;
      fmt::print("  {}  {}{}{}\n", line.problem.empty() ? "ok  " : "FAIL", line.what,
                 line.problem.empty() ? "" : ": ", line.problem);
    }
  }
  if (failed > 0) {
    throw config_error(
        "{} of {} checks of '{}' failed; docs/plugins.md says what each kind of plugin promises.", failed,
        all, options.name);
  }
}

void show(const PluginsOptions& options) {
  PluginHost host(plugin_places(options.plugin_paths));
  fmt::print("{}", options.name.empty() ? list_plugins(host, options.json)
                                        : describe_plugin(host, options.name, options.json));
}

}  // namespace

void add_plugins_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "plugins", "Lists plugins, explains or checks one, or compiles kernels ahead of time");
  auto options = std::make_shared<PluginsOptions>();
  command->add_option("name", options->name, "Plugin to explain")->type_name("NAME");
  command->add_flag("--json", options->json, "Print JSON");
  command
      ->add_option("--plugin-path", options->plugin_paths,
                   "Folder or library to look for plugins in, before MULLIGAN_PLUGIN_PATH; may be repeated")
      ->type_name("PATH")
      ->allow_extra_args(false);
  auto check_options = std::make_shared<CheckOptions>();
  CLI::App* checks =
      command->add_subcommand("check", "Checks a plugin against the contract of its kind, line by line");
  checks->add_option("plugin", check_options->name, "Name of the plugin, or its library file")
      ->required()
      ->type_name("NAME|FILE");
  checks->add_option("--set", check_options->overrides, "A key of the plugin and its value; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  checks->add_option("--backend", check_options->backend.plugin, "Backend that computes (default: cpu)")
      ->type_name("NAME");
  checks
      ->add_option("--set-backend", check_options->backend.overrides,
                   "A key of that backend and its value; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  checks->fallthrough();  // --plugin-path may come after it
  checks->callback([options, check_options] { check(*options, *check_options); });
  add_kernels_command(*command);
  command->callback([command, options] {
    if (command->get_subcommands().empty()) show(*options);
  });
}

}  // namespace mulligan
