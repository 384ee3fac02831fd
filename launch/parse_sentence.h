// What a slip on the command line is called: one sentence in place of CLI11's.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace mulligan {

// `app` is the whole program after the parse that ended with `error`; `first` is the first argument ("" for none). An
// unknown argument is named before a missing one, with the nearest name that exists.
std::string parse_sentence(const CLI::App& app, const CLI::ParseError& error, const std::string& first);

// Of the commands below `parent`.
std::vector<std::string> command_names(const CLI::App& parent);

// "mulligan config print": the command that was named, with those it belongs to.
std::string command_words(const CLI::App& command);

}  // namespace mulligan
