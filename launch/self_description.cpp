#include "launch/self_description.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>

#include "framework/core/utf8.h"
#include "launch/parse_sentence.h"

namespace mulligan {
namespace {

bool takes_value(const CLI::Option& option) {
  return option.get_positional() || option.get_items_expected_max() > 0;
}

// "f32", "bf16" of the type name "TEXT:{f32,bf16}" that CLI11 gives an option with a set of values.
std::vector<std::string> choices_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t open = type.find('{'), close = type.find('}', open);
  if (open == std::string::npos || close == std::string::npos) return {};
  return CLI::detail::split(type.substr(open + 1, close - open - 1), ',');
}

std::string value_word(const CLI::Option& option) {
  return option.get_type_name().empty() || !choices_of(option).empty() ? "VALUE" : option.get_type_name();
}

std::vector<std::string> dashed_names(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

// ASCII text in which roff finds no requests, with hyphens that can be copied. `text`: UTF-8.
std::string roff(const std::string& text) {
  std::string escaped;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(std::string_view(text).substr(at));
    const char c = text[at];
    at += std::max<std::size_t>(length, 1);
    if (length > 1) {
      const char32_t point = utf8_code_point(std::string_view(text).substr(at - length), length);
      escaped += fmt::format("\\[u{:04X}]", static_cast<std::uint32_t>(point));
    } else if (c == '\\') {
      escaped += "\\e";
    } else if (c == '-') {
      escaped += "\\-";
    } else if (c == '\n') {
      escaped += "\n.br\n";
    } else {
      if ((c == '.' || c == '\'') && (escaped.empty() || escaped.back() == '\n')) escaped += "\\&";
      escaped += c;
    }
  }
  return escaped;
}

std::string bold(const std::string& text) {
  return "\\fB" + roff(text) + "\\fR";
}

std::string slanted(const std::string& text) {
  return "\\fI" + roff(text) + "\\fR";
}

// "mulligan train [OPTIONS] FILE"
std::string synopsis(const CLI::App& command) {
  std::string line = bold(command_words(command)) + " [" + slanted("OPTIONS") + "]";
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_positional()) continue;
    const bool repeated = option->get_items_expected_max() > 1;
    const std::string name = slanted(value_word(*option)) + (repeated ? " ..." : "");
    line += option->get_required() ? " " + name : " [" + name + "]";
  }
  return line;
}

std::string option_entry(const CLI::Option& option) {
  std::string head = option.get_positional() ? slanted(value_word(option)) : "";
  if (head.empty()) {
    for (const std::string& name : dashed_names(option)) head += (head.empty() ? "" : ", ") + bold(name);
    if (takes_value(option)) head += " " + slanted(value_word(option));
  }
  std::string text = option.get_description();
  if (const auto choices = choices_of(option); !choices.empty())
    text += fmt::format(": {}", fmt::join(choices, ", "));
  if (const std::string standard = option.get_default_str(); !standard.empty())
    text += fmt::format(" (default: {})", standard);
  return fmt::format(".TP\n{}\n{}.\n", head, roff(text));
}

// The command and those of its own. Not one that does nothing without them: `plugins` does something, `config` does not.
std::string sections(const CLI::App& command) {
  std::string text;
  if (commands_of(command).empty() || command.get_options().size() > 1) {  // one is --help
    text = fmt::format(".SS {}\n{}\n.PP\n{}.\n", roff(command_words(command)), synopsis(command),
                       roff(command.get_description()));
    for (const CLI::Option* option : command.get_options()) {
      if (!option->check_name("--help")) text += option_entry(*option);
    }
  }
  for (const CLI::App* inner : commands_of(command)) text += sections(*inner);
  return text;
}

constexpr const char* environment = R"(.SH ENVIRONMENT
.TP
.B MULLIGAN_PLUGIN_PATH
Folders, with colons between them, in which plugins are looked for, after those of \fB\-\-plugin\-path\fR and
before the program's own.
.TP
.B NO_COLOR
Not empty: no colours on a terminal. \fBTERM\fR=dumb: no live lines either.
.SH SEE ALSO
The documents that are installed next to the program, in its folder share/doc/mulligan, with the configurations.
)";

}  // namespace

std::string manual_page(const CLI::App& app, const std::string& version,
                        const std::vector<std::string>& codes) {
  std::string page = fmt::format(
      ".TH MULLIGAN 1 \"\" \"mulligan {}\" \"User Commands\"\n"
      ".SH NAME\nmulligan \\- trains compact language models and scores them in bits per byte\n"
      ".SH SYNOPSIS\n{} {} [{}]\n.SH DESCRIPTION\n{}\n"
      ".PP\nEvery command explains itself: {}.\n.SH OPTIONS\n",
      roff(version), bold("mulligan"), slanted("COMMAND"), slanted("OPTIONS"), roff(app.get_description()),
      bold("mulligan COMMAND --help"));
  for (const CLI::Option* option : app.get_options()) page += option_entry(*option);
  std::string group;
  for (const CLI::App* command : commands_of(app)) {
    if (command->get_group() != group) {
      group = command->get_group();
      page += fmt::format(".SH COMMANDS \\- {}\n", roff(group));
    }
    page += sections(*command);
  }
  page += ".SH EXIT STATUS\n";
  for (const std::string& code : codes) {
    const std::size_t blank = code.find(' ');
    page += fmt::format(".TP\n{}\n{}.\n", bold(code.substr(0, blank)), roff(code.substr(blank + 1)));
  }
  return page + environment;
}

std::vector<std::string> completions(const CLI::App& app, std::span<const std::string> words,
                                     const std::vector<std::string>& keys) {
  if (words.empty() || words.back().empty()) return {};
  const std::string typed = words.back().substr(1);
  const CLI::App* command = &app;
  const CLI::Option* open = nullptr;  // whose value comes next
  for (const std::string& word : words.first(words.size() - 1)) {
    if (word == "=") continue;  // bash makes three words of --option=value
    const CLI::Option* before = std::exchange(open, nullptr);
    if (word.starts_with('-')) {
      const CLI::Option* named = command->get_option_no_throw(word);
      if (named != nullptr && takes_value(*named)) open = named;
    } else if (before == nullptr) {
      const auto inner = commands_of(*command);
      const auto found = std::ranges::find(inner, word, &CLI::App::get_name);
      if (found != inner.end()) command = *found;
    }
  }
  if (typed.starts_with('-')) open = nullptr;  // the value may be left out
  std::vector<std::string> offered;
  const auto offer = [&](const std::vector<std::string>& some) {
    std::ranges::copy_if(some, std::back_inserter(offered),
                         [&](const std::string& one) { return one.starts_with(typed); });
  };
  if (open != nullptr && open->get_type_name() == "KEY=VALUE") {
    for (const std::string& key : keys) offer({key + "="});
  } else if (open != nullptr) {
    offer(choices_of(*open));
  } else {
    for (const CLI::App* inner : commands_of(*command)) offer({inner->get_name()});
    for (const CLI::Option* option : command->get_options()) {
      if (option->get_positional()) offer(choices_of(*option));
      if (typed.starts_with('-')) offer(dashed_names(*option));
    }
  }
  return offered;
}

}  // namespace mulligan
