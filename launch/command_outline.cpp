#include "launch/command_outline.h"

#include <CLI/CLI.hpp>

namespace mulligan {
namespace {

// "{f32,bf16}" of the type name that CLI11 gives an option with a set of values.
std::vector<std::string> choices_in(const std::string& type_name) {
  const std::size_t open = type_name.find('{');
  const std::size_t close = type_name.find('}', open);
  std::vector<std::string> choices;
  if (open == std::string::npos || close == std::string::npos) return choices;
  for (std::size_t start = open + 1; start <= close;) {
    const std::size_t end = std::min(type_name.find(',', start), close);
    choices.push_back(type_name.substr(start, end - start));
    start = end + 1;
  }
  return choices;
}

ValueKind kind_of(const std::string& value_name) {
  if (value_name == "FILE") return ValueKind::file;
  if (value_name == "FOLDER" || value_name == "DIR" || value_name == "RUN") return ValueKind::folder;
  if (value_name == "PATH") return ValueKind::path;
  if (value_name == "KEY=VALUE") return ValueKind::configuration_key;
  return ValueKind::text;
}

OptionOutline outline_of(const CLI::Option& option) {
  OptionOutline one;
  one.argument = option.get_positional();
  one.required = option.get_required();
  one.repeated = option.get_items_expected_max() > 1;
  one.help = option.get_description();
  one.standard = option.get_default_str();
  if (one.argument) one.names.push_back(option.get_name());
  for (const std::string& name : option.get_snames()) one.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) one.names.push_back("--" + name);
  if (!one.argument && option.get_items_expected_max() == 0) {
    one.kind = ValueKind::none;
    return one;
  }
  one.value_name = option.get_type_name();
  one.choices = choices_in(one.value_name);
  one.kind = one.choices.empty() ? kind_of(one.value_name) : ValueKind::choice;
  if (one.kind == ValueKind::choice || one.value_name.empty()) one.value_name = "VALUE";
  return one;
}

void add(const CLI::App& app, std::vector<std::string> words, std::vector<CommandOutline>& all) {
  CommandOutline one;
  one.words = words;
  one.help = app.get_description();
  one.group = app.get_group();
  for (const CLI::Option* option : app.get_options()) one.options.push_back(outline_of(*option));
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  for (const CLI::App* command : commands) one.commands.push_back(command->get_name());
  all.push_back(std::move(one));
  for (const CLI::App* command : commands) {
    words.push_back(command->get_name());
    add(*command, words, all);
    words.pop_back();
  }
}

}  // namespace

std::vector<CommandOutline> outline(const CLI::App& app) {
  std::vector<CommandOutline> all;
  add(app, {}, all);
  return all;
}

}  // namespace mulligan
