#include "launch/command_outline.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "framework/core/utf8.h"

namespace mulligan {
namespace {

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
std::string synopsis(const CommandOutline& command) {
  std::string line = bold(fmt::format("mulligan {}", fmt::join(command.words, " ")));
  line += " [" + slanted("OPTIONS") + "]";
  for (const OptionOutline& option : command.options) {
    if (!option.argument) continue;
    const std::string name = slanted(option.value_name) + (option.repeated ? " ..." : "");
    line += option.required ? " " + name : " [" + name + "]";
  }
  return line;
}

// Whether the command does something without one of its own: `plugins` does, `config` does not.
bool takes_options(const CommandOutline& command) {
  return command.commands.empty() || command.options.size() > 1;  // one is --help
}

std::string option_entry(const OptionOutline& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.names) names.push_back(bold(name));
  std::string head = option.argument ? slanted(option.value_name) : fmt::format("{}", fmt::join(names, ", "));
  if (!option.argument && option.kind != ValueKind::none) head += " " + slanted(option.value_name);
  std::string text = option.help;
  if (!option.choices.empty()) text += fmt::format(": {}", fmt::join(option.choices, ", "));
  if (!option.standard.empty()) text += fmt::format(" (default: {})", option.standard);
  return fmt::format(".TP\n{}\n{}.\n", head, roff(text));
}

std::string section(const CommandOutline& command) {
  std::string text =
      fmt::format(".SS {}\n{}\n.PP\n{}.\n", roff(fmt::format("mulligan {}", fmt::join(command.words, " "))),
                  synopsis(command), roff(command.help));
  for (const OptionOutline& option : command.options) {
    if (option.names.back() != "--help") text += option_entry(option);
  }
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
)";

}  // namespace

std::string manual_page(const std::vector<CommandOutline>& commands, const std::string& version,
                        const std::vector<std::string>& codes) {
  const CommandOutline& program = commands.front();
  std::string page = fmt::format(
      ".TH MULLIGAN 1 \"\" \"mulligan {}\" \"User Commands\"\n"
      ".SH NAME\nmulligan \\- trains compact language models and scores them in bits per byte\n"
      ".SH SYNOPSIS\n{} {} [{}]\n.SH DESCRIPTION\n{}\n"
      ".PP\nEvery command explains itself: {}.\n.SH OPTIONS\n",
      roff(version), bold("mulligan"), slanted("COMMAND"), slanted("OPTIONS"), roff(program.help),
      bold("mulligan COMMAND --help"));
  for (const OptionOutline& option : program.options) page += option_entry(option);
  std::string group;
  for (const CommandOutline& command : commands) {
    if (command.words.size() == 1 && command.group != group) {
      group = command.group;
      page += fmt::format(".SH COMMANDS \\- {}\n", roff(group));
    }
    if (!command.words.empty() && takes_options(command)) page += section(command);
  }
  page += ".SH EXIT STATUS\n";
  for (const std::string& code : codes) {
    const std::size_t blank = code.find(' ');
    page += fmt::format(".TP\n{}\n{}.\n", bold(code.substr(0, blank)), roff(code.substr(blank + 1)));
  }
  page += environment;
  return page +
         ".SH SEE ALSO\nThe documents that are installed next to the program, in its folder "
         "share/doc/mulligan, with the configurations.\n";
}

}  // namespace mulligan
