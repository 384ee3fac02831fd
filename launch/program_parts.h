// What tools/ and lab/ add to the program: commands of their own, and places in the core's commands. The core knows them
// only by this, so it builds and runs without either.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "framework/train/training_observer.h"
#include "launch/commands/run_options.h"

namespace CLI {
class App;
}

namespace mulligan {

// One line of command_list.inc.
struct CommandEntry {
  const char* name;
  const char* heading;         // of its group in the help
  const char* part;            // "core", "tools", "studies" or "lab"
  void (*add)(CLI::App& app);  // declares the subcommand; null: this build excludes the part
};
// In the order of the help.
std::span<const CommandEntry> command_table();

// The reason why a command of the list is none of this build: "; it is of the lab, ...". Empty for other words.
std::string why_no_command(const std::string& word);

// Answers what the options of `train` ask for in place of training; false: nothing was asked, so it trains.
using TrainAnswer = std::function<bool(const RunOptions&)>;

struct ProgramParts {
  // Watch every training; `force`: although a check refuses its start.
  std::vector<std::function<std::unique_ptr<TrainingObserver>(bool force)>> observers;
  // Declare options of `train`.
  std::vector<std::function<TrainAnswer(CLI::App& train)>> train_answers;
  // Refuses a training that strict rules would not take in the end, before it starts. Throws Error. Empty:
  // there is no such check.
  std::function<void(LoadedConfig& loaded, PluginHost& host, int ranks)> require_strict_start;
  // Writes the report of a run directory. Throws Error. Empty: there is none.
  std::function<void(const std::filesystem::path& run)> write_report;
  std::vector<MakeObserver> training_observers(bool force) const;
};

// Of this build.
const ProgramParts& program_parts();

// Rewrites the run's report.html; does nothing if `run` is empty or holds no run. A failure is a warning on stderr, because the
// work that the report describes is done.
void refresh_report(const std::filesystem::path& run, const ConsoleOptions& console);

// Defined in tools/commands and lab/commands, where these are built.
void add_tools(ProgramParts& parts);
void add_lab(ProgramParts& parts);

}  // namespace mulligan
