// Results that commands write into the run directory of the weights.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "framework/eval/evaluate.h"
#include "framework/report/trials.h"
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

}  // namespace mulligan
