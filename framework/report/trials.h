// What evaluations make of a run's weights after training: scores (evaluations.jsonl), scores under other settings
// (`trials/`) and texts (samples.jsonl).
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "framework/core/score.h"
#include "framework/report/run_directory.h"

namespace mulligan {

// evaluations.jsonl: the scores of a run's weights after training, one JSON object per line.
struct EvaluationRecord : Score {
  std::string weights;         // what was scored, as the user named it
  std::string weights_sha256;  // of the tensors, or of the artifact
  bool artifact = false;       // it was quantised
  std::string mode;            // how, in words: "rows of 512 tokens"
};

// The record as JSON. Numbers that are not finite become null.
nlohmann::ordered_json evaluation_json(const EvaluationRecord& record);
// The reverse. Throws an exception of the library for a damaged record.
EvaluationRecord evaluation_from_json(const nlohmann::ordered_json& json);

// Adds a line. Throws run_error if the file cannot be written.
void add_evaluation(const std::filesystem::path& path, const EvaluationRecord& record);
// The lines in their order; none if there is no file. Throws data_error that names file and line.
std::vector<EvaluationRecord> read_evaluations(const std::filesystem::path& path);

// A score of a run's weights under other settings than the run's own. Each lies in a file of its own,
// `RUN/trials/NAME.json`, which no comparison, headline or budget reads.
struct TrialRecord {
  // One setting, with the run's value and this evaluation's value in TOML syntax ("" if a side has none).
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

// The same command with the same weights and changes has the same name, so a repetition replaces the file.
std::string trial_name(const std::string& command, const std::string& weights,
                       const std::vector<TrialRecord::Change>& changes);

// "data.validation, eval.packed_sequences"
std::string changed_keys(const std::vector<TrialRecord::Change>& changes);

// Writes `RUN/trials/NAME.json`. Throws run_error if it cannot.
void write_trial(const RunFiles& run, const TrialRecord& trial);

// All such scores of a run, by name. Throws data_error, naming the file, if one is damaged.
std::vector<TrialRecord> read_trials(const RunFiles& run);

// samples.jsonl: texts of `mulligan generate` that a run keeps, one JSON object per line.
struct TextSample {
  std::string weights;  // the weights that wrote it, as the user named them
  std::string prompt, text;
  std::int64_t tokens = 0;  // of the text
  double temperature = 0;
  std::uint64_t seed = 0;
};

// Adds a line. Throws run_error if the file cannot be written.
void add_sample(const std::filesystem::path& path, const TextSample& sample);
// The lines in their order; none if there is no file. Throws data_error that names file and line.
std::vector<TextSample> read_samples(const std::filesystem::path& path);

}  // namespace mulligan
