#include "launch/parse_sentence.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "framework/config/schema.h"
#include "launch/program_parts.h"

namespace mulligan {
namespace {

// "; did you mean 'NAME'?", or where to look.
std::string advice(const std::string& word, const std::vector<std::string>& names, const CLI::App& command) {
  const std::string nearest = nearest_name(word, names);
  if (!nearest.empty()) return fmt::format("; did you mean '{}'?", nearest);
  return fmt::format("; `{} --help` lists what there is.", command_words(command));
}

// The innermost command that the line names.
const CLI::App& named_command(const CLI::App& app) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().back();
  return *command;
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// The first of `words` that looks like an option; "" for none.
std::string first_option(const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (word.size() > 1 && word.front() == '-' && word != "--") return word.substr(0, word.find('='));
  }
  return "";
}

std::string value_name(const CLI::Option& option) {
  return option.get_type_name().empty() ? option.get_name() : option.get_type_name();
}

std::string missing_sentence(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_required() || option->count() > 0) continue;
    const std::string what = option->get_positional()
                                 ? value_name(*option)
                                 : fmt::format("{} {}", option->get_name(), value_name(*option));
    return fmt::format("`{}` lacks {}: {}; `{} --help` says more.", command_words(command), what,
                       option->get_description(), command_words(command));
  }
  return "";
}

std::string unknown_argument(const CLI::App& app, const CLI::App& command, const std::string& word) {
  if (const std::string why = &command == &app ? why_no_command(word) : ""; !why.empty())
    return fmt::format("unknown command '{}'{}", word, why);
  if (!command_names(command).empty()) {
    return fmt::format("unknown command '{}'{}{}", word,
                       &command == &app ? "" : " of `" + command_words(command) + "`",
                       advice(word, command_names(command), command));
  }
  return fmt::format("`{}` takes no further argument, and '{}' is one; `{} --help` lists what there is.",
                     command_words(command), word, command_words(command));
}

}  // namespace

std::vector<std::string> command_names(const CLI::App& parent) {
  std::vector<std::string> names;
  for (const CLI::App* command : parent.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  return names;
}

std::string command_words(const CLI::App& command) {
  if (!command.get_parent()) return command.get_name();
  return command_words(*command.get_parent()) + " " + command.get_name();
}

std::string parse_sentence(const CLI::App& app, const CLI::ParseError& error, const std::string& first) {
  const CLI::App& command = named_command(app);
  const std::vector<std::string> unknown = app.remaining(true);
  if (const std::string option = first_option(unknown); !option.empty()) {
    return fmt::format("unknown option '{}' of `{}`{}", option, command_words(command),
                       advice(option, option_names(command), command));
  }
  // Without a command the first word was meant as one; what follows it means nothing.
  if (&command == &app && !first.empty() && first.front() != '-') return unknown_argument(app, app, first);
  // Its get_name() is the command's.
  const bool extra = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError);
  if (extra && !unknown.empty()) {
    return unknown_argument(app, command, unknown.front());
  }
  if (error.get_name() == "RequiredError") {
    if (const std::string missing = missing_sentence(command); !missing.empty()) return missing;
  }
  return fmt::format("{}; `{} --help` says more.", error.what(), command_words(command));
}

}  // namespace mulligan
