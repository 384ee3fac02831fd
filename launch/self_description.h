// What the program says of its commands and options besides `--help`: the manual page, and what completes a line.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace mulligan {

// mulligan(1) in the man macros. `version` is in the footer of its pages; `codes` are the program's exit codes, each "NUMBER WHAT".
std::string manual_page(const CLI::App& app, const std::string& version,
                        const std::vector<std::string>& codes);

// What may stand at the cursor of a command line: commands, options, values of options, and after --set the configuration's
// `keys`, each with "=". `words` are those after the program up to the cursor; the last one is "+" and what is typed of its
// word. Empty: the name of a file, or text of the user's own.
std::vector<std::string> completions(const CLI::App& app, std::span<const std::string> words,
                                     const std::vector<std::string>& keys);

}  // namespace mulligan
