// What a run directory holds, read back for reports and comparisons.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/config/config_report.h"
#include "framework/report/metrics_reader.h"
#include "framework/report/run_directory.h"
#include "framework/report/trials.h"

namespace mulligan::report {

// A value in a result file: an object, a list, a number or a text. What is absent or null reads as nothing. A value of
// another type than is asked for is a data_error that names the file. A path without a key is the value itself.
class ResultValue {
 public:
  ResultValue() = default;
  // The object in `path`; nothing where there is no such file. Throws data_error where the file is no JSON object.
  explicit ResultValue(const std::filesystem::path& path);
  // An object that is in no file.
  static ResultValue of(nlohmann::ordered_json json);

  explicit operator bool() const { return json_ != nullptr; }
  // A member, or with slashes a member of a member: "train_loss/train_loss_run_nats".
  ResultValue operator[](std::string_view path) const;
  std::optional<double> number(std::string_view path = {}) const { return as<double>(path); }
  double number(std::string_view path, double otherwise) const { return number(path).value_or(otherwise); }
  // Throws data_error where the member is absent.
  double required(std::string_view path) const;
  std::string text(std::string_view path = {}) const { return as<std::string>(path).value_or(""); }
  bool flag(std::string_view path) const { return as<bool>(path).value_or(false); }
  // The elements of a list or of an object, each with its key ("0", "1", ... in a list).
  std::vector<std::pair<std::string, ResultValue>> items(std::string_view path) const;
  std::vector<ResultValue> list(std::string_view path) const;
  std::vector<std::string> texts(std::string_view path) const;

 private:
  struct File;
  ResultValue(std::shared_ptr<const File> file, const nlohmann::ordered_json* json);
  template <typename T>
  std::optional<T> as(std::string_view path) const;
  [[noreturn]] void refuse(const std::string& why) const;

  std::shared_ptr<const File> file_;
  const nlohmann::ordered_json* json_ = nullptr;
};

struct RunRecord {
  RunFiles files;
  std::string name;  // of [run]; the folder's where that is empty
  std::vector<ResolvedSetting> settings;
  MetricsHistory metrics;
  // The JSON files of RunFiles. `result` is absent before a run has finished. A void score of test-time training is in
  // ttt_void as a reason, and `ttt` is absent.
  ResultValue result, ledger, quantize, calibration, ensemble, ttt;
  std::string ttt_void;
  std::vector<EvaluationRecord> evaluations;
  std::vector<TrialRecord> trials;  // under other settings: never compared with other runs
  std::vector<TextSample> samples;
  // Files that were changed after they were written, or that are about other weights than the run's; one sentence without full
  // stop each. Scores of other weights are left out. A digest is no signature: a forged result with a forged digest is not found.
  std::vector<std::string> doubts;

  // The value of a setting in TOML syntax without quotes; "" where there is none.
  std::string setting(std::string_view key) const;
  // The same as a number; 0 where there is none.
  double number(std::string_view key) const;
  // "quantised_bpb", "ttt_bpb", "artifact_bytes", or a path in result.json.
  std::optional<double> figure(std::string_view name) const;
  // Whether its losses are of masked tokens that were filled in, not of the next token.
  bool fills_in_masked() const;
  // The newest score of an artifact.
  const EvaluationRecord* quantized() const;
};

// Test-time training scores in bits per byte, or in nats per token where bytes were not counted.
bool scores_bits(const ResultValue& ttt);
// The score with test-time training, of all tokens.
std::optional<double> ttt_score(const ResultValue& ttt);

// Throws data_error where `directory` holds no run (neither metrics.jsonl nor result.json), or where a file is
// damaged. The sentence names the file, and the line in a file of lines.
RunRecord read_run(const std::filesystem::path& directory);
// The same of several, in their order.
std::vector<RunRecord> read_runs(const std::vector<std::string>& directories);

// The doubts about all of `runs`, one line each; "" where there are none.
std::string doubts_text(const std::vector<RunRecord>& runs);
// Throws data_error with the first of them: for what decides something by the figures.
void require_no_doubts(const std::vector<RunRecord>& runs);

}  // namespace mulligan::report
