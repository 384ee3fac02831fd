#include "framework/report/trials.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "framework/core/file.h"
#include "framework/core/json_fields.h"
#include "framework/core/json_file.h"
#include "framework/report/json_lines.h"

namespace mulligan {

nlohmann::ordered_json evaluation_json(const EvaluationRecord& record) {
  nlohmann::ordered_json json{{"weights", record.weights},
                              {"weights_sha256", record.weights_sha256},
                              {"artifact", record.artifact},
                              {"mode", record.mode}};
  add_score(json, record);
  return json;
}

EvaluationRecord evaluation_from_json(const nlohmann::ordered_json& json) {
  return {read_score(json), json.at("weights"), json.value("weights_sha256", ""), json.at("artifact"),
          json.value("mode", "")};
}

void add_evaluation(const std::filesystem::path& path, const EvaluationRecord& record) {
  std::string text;
  if (std::filesystem::exists(path)) text = read_file(path);
  // This rewrites the whole file, so that the file never holds half a line.
  const auto replace = nlohmann::ordered_json::error_handler_t::replace;
  write_file_atomically(path, text + evaluation_json(record).dump(-1, ' ', false, replace) + "\n");
}

template <typename Fields>
void describe(Fields& f, TrialRecord::Change& change) {
  f("key", change.key)("run", change.run)("trial", change.trial);
}

template <typename Fields>
void describe(Fields& f, TrialRecord& trial) {
  f("command", trial.command).custom("score", trial.score, evaluation_json, evaluation_from_json);
  f("changes", trial.changes)("files_sha256", trial.files_sha256);
}

namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

TrialRecord read_trial(const fs::path& path) {
  TrialRecord trial = read_json_object<Json>(path, fields_from_json<TrialRecord>);
  trial.name = path.stem().string();
  return trial;
}

}  // namespace

std::vector<EvaluationRecord> read_evaluations(const fs::path& path) {
  std::vector<EvaluationRecord> evaluations;
  if (!fs::exists(path)) return evaluations;
  read_json_lines(read_file(path), path.string(),
                  [&](const Json& json) { evaluations.push_back(evaluation_from_json(json)); });
  return evaluations;
}

std::string trial_name(const std::string& command, const std::string& weights,
                       const std::vector<TrialRecord::Change>& changes) {
  std::string identity = weights + '\n';
  for (const TrialRecord::Change& change : changes) identity += change.key + '=' + change.trial + '\n';
  return command + "-" + sha256_hex(identity).substr(0, 8);
}

std::string changed_keys(const std::vector<TrialRecord::Change>& changes) {
  std::string text;
  for (const TrialRecord::Change& change : changes) text += (text.empty() ? "" : ", ") + change.key;
  return text;
}

void write_trial(const RunFiles& run, const TrialRecord& trial) {
  write_file_atomically(run.trials() / (trial.name + ".json"),
                        fields_to_json(trial).dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

std::vector<TrialRecord> read_trials(const RunFiles& run) {
  std::vector<TrialRecord> trials;
  if (!fs::is_directory(run.trials())) return trials;
  for (const fs::directory_entry& entry : fs::directory_iterator(run.trials())) {
    if (entry.path().extension() == ".json") trials.push_back(read_trial(entry.path()));
  }
  std::ranges::sort(trials, {}, &TrialRecord::name);
  return trials;
}

void add_sample(const std::filesystem::path& path, const TextSample& sample) {
  const Json json{{"weights", sample.weights}, {"prompt", sample.prompt},           {"text", sample.text},
                  {"tokens", sample.tokens},   {"temperature", sample.temperature}, {"seed", sample.seed}};
  JsonLinesWriter(path, JsonLinesWriter::Start::append)
      .write(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::vector<TextSample> read_samples(const std::filesystem::path& path) {
  std::vector<TextSample> samples;
  if (!std::filesystem::exists(path)) return samples;
  read_json_lines(read_file(path, std::uint64_t{64} << 20), path.string(), [&](const Json& json) {
    samples.push_back({json.at("weights"), json.at("prompt"), json.at("text"), json.at("tokens"),
                       json.at("temperature"), json.at("seed")});
  });
  return samples;
}

}  // namespace mulligan
