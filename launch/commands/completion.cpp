// mulligan completion bash|zsh|man
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "framework/config/core_schema.h"
#include "launch/command_line.h"
#include "launch/command_outline.h"
#include "launch/commands/commands.h"

namespace mulligan {

void add_completion_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "completion",
      "Prints the completion script of a shell, or the manual page, of all commands and options");
  auto of = std::make_shared<std::string>();
  command
      ->add_option("of", *of,
                   "What to print; to use it: source <(mulligan completion bash), or "
                   "mulligan completion man | man -l -")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "man"}));
  command->callback([&app, of] {
    const auto commands = outline(app);
    if (*of == "man") {
      fmt::print("{}", manual_page(commands, version_text(), exit_code_texts()));
      return;
    }
    std::vector<std::string> keys = core_key_names();
    std::erase_if(keys, [](const std::string& key) { return key.find("NAME") != std::string::npos; });
    fmt::print("{}", *of == "bash" ? bash_completion(commands, keys) : zsh_completion(commands, keys));
  });
}

}  // namespace mulligan
