// mulligan ttt
#include <CLI/CLI.hpp>
#include <memory>
#include <optional>

#include "framework/artifact/artifact_run.h"
#include "framework/core/directory_lock.h"
#include "framework/core/error.h"
#include "framework/report/run_directory.h"
#include "framework/run/run_files.h"
#include "framework/run/run_ranks.h"
#include "framework/ttt/ttt_session.h"
#include "launch/commands/commands.h"
#include "launch/commands/run_options.h"
#include "launch/commands/trial.h"
#include "launch/commands/weight_source.h"
#include "launch/program_parts.h"

namespace mulligan {
namespace {

struct TttArguments {
  RunOptions run;
  ConsoleOptions console;
  std::string path;    // artifact, run directory or weights file
  std::string output;  // folder
  bool resume = false;
  std::string launcher;
};

namespace fs = std::filesystem;

// Whether the result goes to `run` (empty: none). Another run's directory is refused: its score is another's.
bool belongs_to_run(const TttArguments& arguments, const fs::path& run) {
  if (arguments.output.empty()) return true;
  const RunFiles output{arguments.output};
  if (!fs::exists(output.metrics()) || !fs::exists(output.config())) return false;
  std::error_code failed;
  if (!run.empty() && fs::equivalent(run, output.directory, failed)) return true;
  throw config_error(
      "--output '{}' is the directory of another run, whose score this would replace; name a "
      "folder of its own.",
      arguments.output);
}

// The run directory and --output are the first rank's; the others compute their share.
void run(const TttArguments& arguments, RunRanks& ranks) {
  WeightSource source = open_weights(arguments.path, arguments.run);
  TttOptions options;
  static_cast<ConsoleOptions&>(options) = console_of(ranks, arguments.console);
  options.quantised = !std::filesystem::is_directory(arguments.path) && is_artifact(arguments.path);
  const fs::path run = ranks.first() ? run_directory_of(arguments.path) : fs::path();
  if (ranks.first()) options.directory = arguments.output;
  const bool in_run = ranks.first() && belongs_to_run(arguments, run);
  std::vector<TrialRecord::Change> changes;
  if (in_run) options.directory = run;
  if (!run.empty())
    changes = changes_from_run(run, arguments.path, source.loaded, source.origin, ScoreCommand::ttt);
  if (!in_run) changes.clear();  // the result is no run's
  std::optional<DirectoryLock> lock;
  if (!changes.empty()) {
    lock.emplace(run, "ttt", DirectoryLock::Kind::shared);  // other settings: the run's own files stay
    remove_temporary_leftovers(run);
    options.directory = trial_folder("ttt", run, arguments.path, changes);
  }
  config_error_if(arguments.resume && ranks.alone() && options.directory.empty(),
                  "'{}' is not in a run directory, so no state of test-time training "
                  "is kept; name a folder for it with --output, or leave out --resume.",
                  arguments.path);
  options.resume = arguments.resume;
  PluginHost host = arguments.run.plugin_host();
  const TttResult result = run_ttt(source.loaded, host, source.origin, source.load, options, &ranks);
  if (!changes.empty()) note_score("ttt", run, arguments.path, source, result.with, changes);
  if (in_run) refresh_report(run, arguments.console);
}

}  // namespace

void add_ttt_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("ttt", "Scores weights with test-time training, as [ttt] says");
  auto arguments = std::make_shared<TttArguments>();
  arguments->run.declare_weights(*command, arguments->path);
  command
      ->add_option("--output", arguments->output,
                   "Folder for ttt_result.json and the audit log; without it the run directory that PATH "
                   "is or lies in")
      ->type_name("FOLDER");
  command->add_flag(
      "--resume", arguments->resume,
      "Continue test-time training that was stopped or killed; from the beginning where nothing was saved");
  arguments->run.declare(*command);
  declare_quiet(*command, arguments->console);
  declare_launcher(*command, arguments->launcher);
  command->callback([arguments] {
    share_among_ranks(arguments->launcher, [&](RunRanks& ranks) { run(*arguments, ranks); });
  });
}

}  // namespace mulligan
