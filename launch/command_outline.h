// The commands and options that the program declares, as plain data. Completions and the manual page are made of it, so that
// they agree with `--help`.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace mulligan {

// How the value of an option or argument is completed.
enum class ValueKind { none, text, file, folder, path, configuration_key, choice };

struct OptionOutline {
  std::vector<std::string> names;  // "--threads", "-h"; of an argument its one name, such as "config"
  bool argument = false;           // positional
  bool required = false;
  bool repeated = false;
  ValueKind kind = ValueKind::text;
  std::string value_name;            // "FILE"; "" where there is no value
  std::vector<std::string> choices;  // of ValueKind::choice
  std::string help, standard;        // `standard`: the default, "" for none
};

struct CommandOutline {
  std::vector<std::string> words;  // {"config", "print"}; {} is the program
  std::string help;
  std::string group;  // its heading in the help of the parent command
  std::vector<OptionOutline> options;
  std::vector<std::string> commands;  // names of its subcommands
};

// The program first, then its commands in the order of their declaration, each followed by its own.
std::vector<CommandOutline> outline(const CLI::App& app);

// mulligan(1) in the man macros. `version` is in the footer of its pages; `about` is the program's description; `codes` are its
// exit codes, each "NUMBER WHAT".
std::string manual_page(const std::vector<CommandOutline>& commands, const std::string& version,
                        const std::vector<std::string>& codes);

// Scripts that complete commands, options and their values, and the configuration's `keys` after --set.
std::string bash_completion(const std::vector<CommandOutline>& commands,
                            const std::vector<std::string>& keys);
std::string zsh_completion(const std::vector<CommandOutline>& commands, const std::vector<std::string>& keys);

}  // namespace mulligan
