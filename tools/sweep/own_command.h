// A command of this program in a process of its own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/report/console.h"

namespace mulligan {

struct OwnCommand {
  std::vector<std::string> words;                   // without the program
  std::vector<std::string> plugin_paths = {};       // as of --plugin-path
  std::int64_t ranks = 1;                           // more than one: processes that `mulligan launch` starts
  std::filesystem::path directory = {};             // of the run; the ranks' logs are in DIRECTORY_ranks
  std::string what = {};                            // beginning of an error message: "seed 42, training: "
  std::string log = {};                             // log file that the message names
  std::function<void(std::string_view)> show = {};  // gets what the command prints
  std::function<bool()> end = {};  // asked at least five times a second: whether to end it early

  std::vector<std::string> arguments() const;  // the program first
  // Runs it. False if it was ended early. Throws an Error of its exit code and with its last sentence; one of
  // ExitCode::interrupted after a signal (StopSignals), when the command has saved what it has.
  bool run() const;
};

// Prints a command's output, if there is a console.
void show_bytes(const ConsoleOptions& console, std::string_view bytes);

}  // namespace mulligan
