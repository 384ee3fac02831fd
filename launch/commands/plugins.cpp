// mulligan plugins [NAME] [--json]
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

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

void show(const PluginsOptions& options) {
  PluginHost host(plugin_places(options.plugin_paths));
  fmt::print("{}", options.name.empty() ? list_plugins(host, options.json)
                                        : describe_plugin(host, options.name, options.json));
}

}  // namespace

void add_plugins_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("plugins", "Lists the plugins found, or explains one and its keys");
  auto options = std::make_shared<PluginsOptions>();
  command->add_option("name", options->name, "Plugin to explain")->type_name("NAME");
  command->add_flag("--json", options->json, "Print JSON");
  command
      ->add_option("--plugin-path", options->plugin_paths,
                   "Folder or library to look for plugins in, before MULLIGAN_PLUGIN_PATH; may be repeated")
      ->type_name("PATH")
      ->allow_extra_args(false);
  command->callback([options] { show(*options); });
}

}  // namespace mulligan
