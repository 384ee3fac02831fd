// Trials: scores of a run's weights under other settings than the run's own. Each lies in a file of its own,
// RUN/trials/NAME.json, which no comparison, headline or budget reads.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "framework/report/evaluations_file.h"
#include "framework/report/run_directory.h"

namespace mulligan {

struct TrialRecord {
  // One setting, with the run's value and the trial's in TOML syntax ("" where that side has none).
  struct Change {
    std::string key, run, trial;
  };
  std::string name;     // "eval-1a2b3c4d": of the file; trial_name()
  std::string command;  // "eval" or "ttt"
  EvaluationRecord score;
  std::vector<Change> changes;
  // Files of the validation data and the tokenizer, each with its sha256.
  std::vector<std::pair<std::string, std::string>> files_sha256;
};

// The same command with the same weights and changes has the same name, so that its repetition replaces it.
std::string trial_name(const std::string& command, const std::string& weights,
                       const std::vector<TrialRecord::Change>& changes);

// "data.validation, eval.packed_sequences"
std::string changed_keys(const std::vector<TrialRecord::Change>& changes);

// Writes RUN/trials/NAME.json. Throws run_error when it cannot.
void write_trial(const RunFiles& run, const TrialRecord& trial);

// All trials of a run, by name. Throws data_error, naming the file, where one is damaged.
std::vector<TrialRecord> read_trials(const RunFiles& run);

}  // namespace mulligan
