// mulligan completion bash|zsh, mulligan man
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "framework/config/core_schema.h"
#include "launch/command_line.h"
#include "launch/command_outline.h"
#include "launch/commands/commands.h"
#include "launch/manual_page.h"
#include "launch/shell_completion.h"

namespace mulligan {

void add_completion_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "completion", "Prints a script with which the shell completes mulligan's commands and options");
  auto shell = std::make_shared<std::string>();
  command->add_option("shell", *shell, "For example: source <(mulligan completion bash)")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh"}));
  command->callback([&app, shell] {
    const auto commands = outline(app);
    std::vector<std::string> keys = core_key_names();
    std::erase_if(keys, [](const std::string& key) { return key.find("NAME") != std::string::npos; });
    fmt::print("{}", *shell == "bash" ? bash_completion(commands, keys) : zsh_completion(commands, keys));
  });
}

void add_man_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("man", "Prints the manual page; to read it: mulligan man | man -l -");
  command->callback(
      [&app] { fmt::print("{}", manual_page(outline(app), version_text(), exit_code_texts())); });
}

}  // namespace mulligan
