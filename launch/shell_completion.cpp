#include "launch/command_outline.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace mulligan {
namespace {

std::string joined(const std::vector<std::string>& words, const char* between) {
  return fmt::format("{}", fmt::join(words, between));
}

// The argument that a word without a dash is: the first of the command, "" kinds for none.
const OptionOutline* first_argument(const CommandOutline& command) {
  const auto found = std::ranges::find_if(command.options, &OptionOutline::argument);
  return found == command.options.end() ? nullptr : &*found;
}

// The shell code that completes one value, in the words of the script's own functions.
std::string bash_values(const OptionOutline& option) {
  switch (option.kind) {
    case ValueKind::file:
    case ValueKind::path:
      return "_mulligan_files -f";
    case ValueKind::folder:
      return "_mulligan_files -d";
    case ValueKind::configuration_key:
      return "_mulligan_keys";
    case ValueKind::choice:
      return fmt::format("_mulligan_words '{}'", joined(option.choices, " "));
    case ValueKind::text:
    case ValueKind::none:
      return ":";
  }
  return ":";
}

constexpr const char* bash_head = R"(# Completion of mulligan for bash, made by `mulligan completion bash`.
_mulligan_words() { mapfile -t COMPREPLY < <(compgen -W "$1" -- "$cur"); }
_mulligan_files() {
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen "$1" -- "$cur")
}
_mulligan_keys() {
  compopt -o nospace 2>/dev/null
  mapfile -t COMPREPLY < <(compgen -S = -W '{keys}' -- "$cur")
}
_mulligan() {
  local cur=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command="" i
  COMPREPLY=()
  # --option=value arrives as three words.
  if [[ $cur == = ]]; then cur=""; fi
  if [[ $previous == = ]]; then previous=${COMP_WORDS[COMP_CWORD - 2]}; fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case "${command:+$command }${COMP_WORDS[i]}" in
      {commands}) command=${command:+$command }${COMP_WORDS[i]} ;;
    esac
  done
  if [[ $cur == -* ]]; then previous=""; fi
  case "$command:$previous" in
)";

std::string zsh_escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\'') {
      escaped += "'\\''";
    } else if (c == '[' || c == ']' || c == ':' || c == '\\') {
      escaped += std::string("\\") + c;
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string zsh_values(const OptionOutline& option) {
  switch (option.kind) {
    case ValueKind::file:
    case ValueKind::path:
      return "_files";
    case ValueKind::folder:
      return "_files -/";
    case ValueKind::configuration_key:
      return "_mulligan_keys";
    case ValueKind::choice:
      return fmt::format("({})", joined(option.choices, " "));
    case ValueKind::text:
    case ValueKind::none:
      return " ";
  }
  return " ";
}

std::string zsh_function(const CommandOutline& command) {
  return "_mulligan" + (command.words.empty() ? "" : "_" + joined(command.words, "_"));
}

std::string zsh_option(const OptionOutline& option) {
  std::string lines;
  for (const std::string& name : option.names) {
    const bool value = option.kind != ValueKind::none;
    const bool others = !option.repeated && option.names.size() > 1;
    lines +=
        fmt::format(" \\\n    '{}{}{}{}[{}]{}'", option.repeated ? "*" : "",
                    others ? fmt::format("({})", joined(option.names, " ")) : "", name,
                    value && name.starts_with("--") ? "=" : "", zsh_escaped(option.help),
                    value ? fmt::format(":{}:{}", zsh_escaped(option.value_name), zsh_values(option)) : "");
  }
  return lines;
}

std::string zsh_argument(const OptionOutline& option) {
  return fmt::format(" \\\n    '{}:{}:{}'", option.repeated ? "*" : "", zsh_escaped(option.value_name),
                     zsh_values(option));
}

std::string zsh_group_end(const std::string& group) {
  const std::string tag = group.substr(0, group.find_first_of(": "));
  return fmt::format("\n      )\n      _describe -t '{}-commands' '{}' commands", tag, zsh_escaped(group));
}

// Offers the commands under the headings that the help has them under.
std::string zsh_subcommands(const CommandOutline& command, const std::vector<CommandOutline>& all) {
  std::string groups, cases, group;
  for (const std::string& name : command.commands) {
    std::vector<std::string> words = command.words;
    words.push_back(name);
    const auto found = std::ranges::find(all, words, &CommandOutline::words);
    if (groups.empty() || found->group != group) {
      if (!groups.empty()) groups += zsh_group_end(group);
      group = found->group;
      groups += "\n      commands=(";
    }
    groups += fmt::format("\n        '{}:{}'", name, zsh_escaped(found->help));
    cases += fmt::format("\n      {}) {} ;;", name, zsh_function(*found));
  }
  return fmt::format(
      " \\\n    '1: :->command' '*:: :->arguments'\n"
      "  case $state in\n"
      "    command){}{} ;;\n"
      "    arguments) case $words[1] in{}\n    esac ;;\n  esac\n",
      groups, zsh_group_end(group), cases);
}

}  // namespace

std::string bash_completion(const std::vector<CommandOutline>& commands,
                            const std::vector<std::string>& keys) {
  std::string patterns, values, words;
  for (const CommandOutline& command : commands) {
    const std::string name = joined(command.words, " ");
    if (!name.empty()) patterns += fmt::format("{}'{}'", patterns.empty() ? "" : " | ", name);
    std::vector<std::string> options;
    for (const OptionOutline& option : command.options) {
      if (option.argument) continue;
      options.insert(options.end(), option.names.begin(), option.names.end());
      if (option.kind == ValueKind::none) continue;
      for (const std::string& one : option.names) {
        values += fmt::format("    '{}:{}') {} && return ;;\n", name, one, bash_values(option));
      }
    }
    const OptionOutline* argument = first_argument(command);
    const std::string plain = !command.commands.empty()
                                  ? fmt::format("_mulligan_words '{}'", joined(command.commands, " "))
                                  : (argument ? bash_values(*argument) : ":");
    words += fmt::format("    '{}') if [[ $cur == -* ]]; then _mulligan_words '{}'; else {}; fi ;;\n", name,
                         joined(options, " "), plain);
  }
  std::string head = bash_head;
  head.replace(head.find("{keys}"), 6, joined(keys, " "));
  head.replace(head.find("{commands}"), 10, patterns);
  return head + values + "  esac\n  case \"$command\" in\n" + words +
         "  esac\n}\ncomplete -F _mulligan mulligan\n";
}

std::string zsh_completion(const std::vector<CommandOutline>& commands,
                           const std::vector<std::string>& keys) {
  std::string script = fmt::format(
      "#compdef mulligan\n# Completion of mulligan for zsh, made by `mulligan completion zsh`.\n"
      "_mulligan_keys() {{\n  compadd -S = -- {}\n}}\n",
      joined(keys, " "));
  for (auto command = commands.rbegin(); command != commands.rend(); ++command) {
    script += fmt::format(
        "{}() {{\n  local curcontext=\"$curcontext\" state line\n  local -a commands\n  typeset -A opt_args\n"
        "  _arguments -C",
        zsh_function(*command));
    for (const OptionOutline& option : command->options) {
      script += option.argument ? zsh_argument(option) : zsh_option(option);
    }
    script += command->commands.empty() ? "\n" : zsh_subcommands(*command, commands);
    script += "}\n";
  }
  // Sourced, it declares itself; from a folder of $fpath zsh calls it.
  return script +
         "if [[ $funcstack[1] == _mulligan ]]; then _mulligan \"$@\"; else compdef _mulligan mulligan; fi\n";
}

}  // namespace mulligan
