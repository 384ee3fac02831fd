// mulligan eval
#include <CLI/CLI.hpp>
#include <memory>

#include "framework/core/error.h"
#include "framework/run/evaluate_loaded.h"
#include "framework/run/run_ranks.h"
#include "launch/commands/commands.h"
#include "launch/commands/run_options.h"
#include "launch/commands/trial.h"
#include "launch/commands/weight_source.h"
#include "launch/program_parts.h"

namespace mulligan {
namespace {

struct EvalArguments {
  RunOptions run;
  ConsoleOptions console;
  std::string path;  // artifact, run directory or weights file
  bool resume = false;
  std::string launcher;
};

// The run directory is the first rank's; the others compute their share.
void run(const EvalArguments& arguments, RunRanks& ranks) {
  const std::filesystem::path run =
      ranks.first() ? run_directory_of(arguments.path) : std::filesystem::path();
  auto [_, lock, source, host, changes] = open_for_score(run, arguments.path, arguments.run, "eval");
  ScoreFiles files{run, arguments.resume};
  if (!changes.empty()) files.directory = trial_folder("eval", run, arguments.path, changes);
  if (arguments.resume && ranks.alone() && run.empty()) {
    throw config_error(
        "'{}' is not in a run directory, so no state of an evaluation is kept; leave out --resume.",
        arguments.path);
  }
  const EvalResult score = evaluate_loaded(source.loaded, host, source.origin, source.load,
                                           console_of(ranks, arguments.console), files, ranks);
  if (run.empty()) return;
  note_score("eval", run, arguments.path, source, score, changes);
  refresh_report(run, arguments.console);
}

}  // namespace

void add_eval_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("eval", "Scores weights on the validation shards in bits per byte");
  auto arguments = std::make_shared<EvalArguments>();
  arguments->run.declare_weights(*command, arguments->path);
  command->add_flag(
      "--resume", arguments->resume,
      "Continue an evaluation that was stopped or killed; from the beginning where nothing was saved");
  arguments->run.declare(*command);
  declare_quiet(*command, arguments->console);
  declare_launcher(*command, arguments->launcher);
  command->callback([arguments] {
    share_among_ranks(arguments->launcher, [&](RunRanks& ranks) { run(*arguments, ranks); });
  });
}

}  // namespace mulligan
