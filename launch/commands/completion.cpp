// mulligan completion bash|zsh|man
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "framework/config/core_schema.h"
#include "launch/command_line.h"
#include "launch/commands/commands.h"
#include "launch/self_description.h"

namespace mulligan {
namespace {

// Where the program offers nothing, both shells offer files.
constexpr const char* bash_script = R"(# Completion of mulligan for bash, made by `mulligan completion bash`.
_mulligan() {
  local cur=${COMP_WORDS[COMP_CWORD]}
  if [[ $cur == = ]]; then cur=""; fi
  mapfile -t COMPREPLY < <("${COMP_WORDS[0]}" completion words -- "${COMP_WORDS[@]:1:COMP_CWORD-1}" "+$cur" 2>/dev/null)
  if [[ ${COMPREPLY[0]} == *= ]]; then compopt -o nospace 2>/dev/null; fi
}
complete -o default -F _mulligan mulligan
)";

// Sourced, it declares itself; from a folder of $fpath zsh calls it.
constexpr const char* zsh_script = R"zsh(#compdef mulligan
# Completion of mulligan for zsh, made by `mulligan completion zsh`.
_mulligan() {
  local -a found
  found=(${(f)"$($words[1] completion words -- ${words[2,CURRENT-1]} "+$PREFIX" 2>/dev/null)"})
  if (( ! $#found )); then _files; return; fi
  compadd -S '' -- ${(M)found:#*=}
  compadd -- ${found:#*=}
}
if [[ $funcstack[1] == _mulligan ]]; then _mulligan "$@"; else compdef _mulligan mulligan; fi
)zsh";

struct CompletionArguments {
  std::string of;
  std::vector<std::string> words;
};

void print(const CLI::App& app, const CompletionArguments& arguments) {
  if (arguments.of == "man") fmt::print("{}", manual_page(app, version_text(), exit_code_texts()));
  if (arguments.of == "bash") fmt::print("{}", bash_script);
  if (arguments.of == "zsh") fmt::print("{}", zsh_script);
  if (arguments.of != "words") return;
  std::vector<std::string> keys = core_key_names();
  std::erase_if(keys, [](const std::string& key) { return key.find("NAME") != std::string::npos; });
  for (const std::string& word : completions(app, arguments.words, keys)) fmt::print("{}\n", word);
}

}  // namespace

void add_completion_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "completion",
      "Prints the completion script of a shell, or the manual page, of all commands and options");
  auto arguments = std::make_shared<CompletionArguments>();
  command
      ->add_option("of", arguments->of,
                   "What to print; to use it: source <(mulligan completion bash), or "
                   "mulligan completion man | man -l -")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "man", "words"}));
  command
      ->add_option("words", arguments->words,
                   "With words, after `--`: the words up to the cursor, the last one with + before it")
      ->type_name("WORD");
  command->callback([&app, arguments] { print(app, *arguments); });
}

}  // namespace mulligan
