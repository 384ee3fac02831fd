// mulligan plugins [NAME] [--json], mulligan plugins check NAME|FILE; plugins kernels lies in kernels.cpp
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "framework/core/child_process.h"
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
  std::string backend = "cpu";
  std::vector<std::string> backend_overrides;
};

// Becomes the program whose malloc counts.
[[noreturn]] void check(const PluginsOptions& places, const CheckOptions& options) {
  const std::string program =
      (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "mulligan_plugin_check").string();
  std::vector<std::string> words{program, options.name, options.backend};
  const auto add = [&](const char* kind, const std::vector<std::string>& values) {
    for (const std::string& value : values) words.push_back(fmt::format("{}={}", kind, value));
  };
  add("path", places.plugin_paths);
  add("set", options.overrides);
  add("set_backend", options.backend_overrides);
  std::fflush(stdout);
  become_program(words);
  throw run_error("'{}' cannot be started: {}; install mulligan again.", program, std::strerror(errno));
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
  checks->add_option("--backend", check_options->backend, "Backend that computes (default: cpu)")
      ->type_name("NAME");
  checks
      ->add_option("--set-backend", check_options->backend_overrides,
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
