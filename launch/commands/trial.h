// Whether a score is the run's own or a trial under other settings, and where each is kept.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "framework/config/score_settings.h"
#include "framework/report/trials.h"
#include "framework/run/weight_origin.h"
#include "launch/commands/weight_source.h"

namespace mulligan {

// What was scored differently from what the configuration of the run at `run` says: every setting that can
// move the score of this command, and weights that are neither the run's nor its artifact; and validation
// shards that are not those of the weights' run although they lie in the same place (`origin` says which).
// Empty: the score is the run's own. Other settings than that (where data for training lie, the number of
// threads) do not count.
std::vector<TrialRecord::Change> changes_from_run(const std::filesystem::path& run,
                                                  const std::filesystem::path& weights,
                                                  const LoadedConfig& used, const WeightOrigin& origin,
                                                  ScoreCommand command);

// Digests of the validation data and the tokenizer that `data` names.
std::vector<std::pair<std::string, std::string>> files_digests(const DataConfig& data);

// The folder of a trial's own files: RUN/trials/NAME.
std::filesystem::path trial_folder(const std::filesystem::path& run, const std::string& name);

}  // namespace mulligan
