// Decides whether a score is the run's own or one under other settings, and where each is kept.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "framework/config/config_report.h"
#include "framework/core/directory_lock.h"
#include "framework/eval/evaluate.h"
#include "framework/report/trials.h"
#include "framework/run/weight_origin.h"
#include "launch/commands/weight_source.h"

namespace mulligan {

// The file of weights for `path`: if it is a run directory, the run's.
std::filesystem::path weights_of(const std::filesystem::path& path);

// The run directory for `path`: `path` itself or the one that holds this file; empty: neither.
std::filesystem::path run_directory_of(const std::filesystem::path& path);

// The folder for files of a score under other settings: `RUN/trials/NAME`.
std::filesystem::path trial_folder(const std::string& command, const std::filesystem::path& run,
                                   const std::filesystem::path& path,
                                   const std::vector<TrialRecord::Change>& changes);

// Adds a score of "eval" to the run's evaluations.jsonl. With `changes` from the run's settings, it writes a score of "eval" or "ttt" to
// `trials/` instead and prints a message. `path` is what was scored. A failure is a warning on stderr, since the score was printed.
void note_score(const std::string& command, const std::filesystem::path& run,
                const std::filesystem::path& path, const WeightSource& source, const EvalResult& score,
                const std::vector<TrialRecord::Change>& changes);

// The differences between this scoring and the run at `run`. They are every setting that can change the score of this command;
// weights that are neither the run's nor its artifact; and validation shards that differ from those of the weights' run
// although they lie in the same place (`origin` says which). Empty: the score is the run's own. Other settings (the folder of
// training data, the number of threads) do not count. Throws data_error for other weights under strict rules.
std::vector<TrialRecord::Change> changes_from_run(const std::filesystem::path& run,
                                                  const std::filesystem::path& weights,
                                                  const LoadedConfig& used, const WeightOrigin& origin,
                                                  ScoreCommand command);

// Weights that are opened for scoring, and their differences from the run at `run` (empty: they belong to none).
struct OpenedScore {
  std::filesystem::path run;
  std::optional<DirectoryLock> lock;  // no process may replace the run meanwhile; others may score it, too
  WeightSource source;
  PluginHost host;
  std::vector<TrialRecord::Change> changes;
};
OpenedScore open_for_score(const std::filesystem::path& run, const std::string& weights,
                           const RunOptions& options, std::string_view command);

// Keeps `text` as `file` of the run. If the score is of the run as it was trained, it rewrites the run's report. Unless quiet,
// it tells the reason for a failure. Does nothing without a run.
void keep_in_run(const OpenedScore& score, const std::filesystem::path& file, const std::string& text,
                 const ConsoleOptions& console);

}  // namespace mulligan
