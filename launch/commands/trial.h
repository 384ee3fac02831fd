// Whether a score is the run's own or a trial under other settings, and where each is kept.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "framework/config/score_settings.h"
#include "framework/core/directory_lock.h"
#include "framework/report/trials.h"
#include "framework/run/weight_origin.h"
#include "launch/commands/weight_source.h"

namespace mulligan {

// What was scored differently from what the configuration of the run at `run` says: every setting that can
// move the score of this command, and weights that are neither the run's nor its artifact; and validation
// shards that are not those of the weights' run although they lie in the same place (`origin` says which).
// Empty: the score is the run's own. Other settings than that (where data for training lie, the number of
// threads) do not count. Under strict rules throws data_error for other weights.
std::vector<TrialRecord::Change> changes_from_run(const std::filesystem::path& run,
                                                  const std::filesystem::path& weights,
                                                  const LoadedConfig& used, const WeightOrigin& origin,
                                                  ScoreCommand command);

// Weights that are opened to be scored, and what of them differs from the run at `run` (empty: they are of none).
struct OpenedScore {
  std::filesystem::path run;
  std::optional<DirectoryLock> lock;  // nobody may replace the run meanwhile; others may score it, too
  WeightSource source;
  PluginHost host;
  std::vector<TrialRecord::Change> changes;
};
OpenedScore open_for_score(const std::filesystem::path& run, const std::string& weights,
                           const RunOptions& options, std::string_view command);

// Keeps `text` as `file` of the run and makes its report anew where it is of the run as it was trained; says on the screen
// why not, unless that is quiet. Not so without a run.
void keep_in_run(const OpenedScore& score, const std::filesystem::path& file, const std::string& text,
                 const ConsoleOptions& console);

// Digests of the validation data and the tokenizer that `data` names.
std::vector<std::pair<std::string, std::string>> files_digests(const DataConfig& data);

// The folder of a trial's own files: RUN/trials/NAME.
std::filesystem::path trial_folder(const std::filesystem::path& run, const std::string& name);

}  // namespace mulligan
