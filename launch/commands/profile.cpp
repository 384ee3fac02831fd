// mulligan profile
#include "framework/cost/profile.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "launch/commands/commands.h"
#include "launch/commands/run_options.h"

namespace mulligan {
namespace {

struct ProfileArguments {
  RunOptions run;
  ProfileOptions profile;
  bool json = false;
};

}  // namespace

void add_profile_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("profile", "Times one training step kernel by kernel");
  auto arguments = std::make_shared<ProfileArguments>();
  command->add_option("config", arguments->run.config, "Configuration (TOML)")->required()->type_name("FILE");
  arguments->run.declare(*command);
  command->add_option("--steps", arguments->profile.steps, "Steps that are timed; the median counts")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command->add_flag("--shapes", arguments->profile.by_shape, "A row per kernel and shapes of its arguments");
  command->add_flag("--looped", arguments->profile.looped, "The first phase with the looped layer order")
      ->excludes(
          command->add_option("--phase", arguments->profile.phase, "A phase by its name; without: the first")
              ->type_name("NAME"));
  command->add_flag("--json", arguments->json, "Print JSON");
  command->callback([arguments] {
    require_one_process("profile");
    PluginHost host = arguments->run.plugin_host();
    LoadedConfig loaded = load_config(arguments->run.config, arguments->run.overrides);
    const Profile profile = profile_step(loaded, host, arguments->profile);
    fmt::print("{}", arguments->json ? profile_json(profile) : format_profile(profile));
  });
}

}  // namespace mulligan
