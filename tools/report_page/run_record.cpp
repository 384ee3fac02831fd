#include "tools/report_page/run_record.h"

#include <charconv>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/json_file.h"
#include "framework/report/json_lines.h"
#include "tools/report_page/run_observations.h"

namespace mulligan::report {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

struct ResultValue::File {
  fs::path path;
  Json json;
};

ResultValue::ResultValue(const fs::path& path) {
  if (!fs::exists(path)) return;
  file_ =
      std::make_shared<File>(File{path, read_json_object<Json>(path, [](const Json& json) { return json; })});
  json_ = &file_->json;
}

ResultValue::ResultValue(std::shared_ptr<const File> file, const Json* json)
    : file_(std::move(file)), json_(json->is_null() ? nullptr : json) {}

void ResultValue::refuse(const std::string& why) const {
  throw data_error("'{}' is not as mulligan writes it ({}); make it anew or remove it.", file_->path.string(),
                   why);
}

template <typename T>
std::optional<T> ResultValue::as() const {
  if (json_ == nullptr) return {};
  try {
    return json_->get<T>();
  } catch (const nlohmann::json::exception& error) {
    refuse(error.what());
  }
}

ResultValue ResultValue::operator[](std::string_view path) const {
  const std::string_view key = path.substr(0, path.find('/'));
  if (json_ == nullptr || !json_->is_object()) return {};
  const auto found = json_->find(key);
  if (found == json_->end()) return {};
  const ResultValue member(file_, &*found);
  return key.size() == path.size() ? member : member[path.substr(key.size() + 1)];
}

double ResultValue::required(std::string_view path) const {
  if (const std::optional<double> value = number(path)) return *value;
  refuse(std::string(path) + " is missing");
}

std::vector<std::pair<std::string, ResultValue>> ResultValue::items(std::string_view path) const {
  const ResultValue all = (*this)[path];
  std::vector<std::pair<std::string, ResultValue>> found;
  if (!all) return found;
  if (!all.json_->is_structured()) refuse(std::string(path) + " is no list");
  for (const auto& [key, value] : all.json_->items()) found.emplace_back(key, ResultValue(file_, &value));
  return found;
}

std::vector<ResultValue> ResultValue::list(std::string_view path) const {
  std::vector<ResultValue> found;
  for (const auto& [key, value] : items(path)) found.push_back(value);
  return found;
}

std::vector<std::string> ResultValue::texts(std::string_view path) const {
  std::vector<std::string> found;
  for (const ResultValue& value : list(path)) found.push_back(value.text());
  return found;
}

bool scores_bits(const ResultValue& ttt) {
  return ttt.number("with_ttt/bytes", 0) > 0;
}

std::optional<double> ttt_score(const ResultValue& ttt) {
  return ttt.number(scores_bits(ttt) ? "with_ttt/val_bpb" : "with_ttt/val_loss_nats");
}

std::string RunRecord::setting(std::string_view key) const {
  for (const ResolvedSetting& setting : settings) {
    if (setting.key != key) continue;
    const bool quoted = setting.value.size() >= 2 && setting.value.front() == '"';
    return quoted ? setting.value.substr(1, setting.value.size() - 2) : setting.value;
  }
  return {};
}

double RunRecord::number(std::string_view key) const {
  const std::string text = setting(key);
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

bool RunRecord::fills_in_masked() const {
  return result.flag("val_masked") || number("model.masking.share") > 0;
}

const EvaluationRecord* RunRecord::quantized() const {
  for (auto evaluation = evaluations.rbegin(); evaluation != evaluations.rend(); ++evaluation) {
    if (evaluation->artifact) return &*evaluation;
  }
  return nullptr;
}

namespace {

// An unfinished last line is left out.
std::vector<EvaluationRecord> read_evaluations(const fs::path& path) {
  std::vector<EvaluationRecord> evaluations;
  if (!fs::exists(path)) return evaluations;
  read_json_lines(read_file(path), path.string(),
                  [&](const Json& json) { evaluations.push_back(evaluation_from_json(json)); });
  return evaluations;
}

std::string folder_name(const fs::path& directory) {
  const fs::path whole = fs::absolute(directory).lexically_normal();
  return (whole.filename().empty() ? whole.parent_path() : whole).filename().string();
}

}  // namespace

RunRecord read_run(const fs::path& directory) {
  RunRecord run;
  run.files.directory = directory;
  const RunFiles& files = run.files;
  if (!fs::exists(files.metrics()) && !fs::exists(files.result())) {
    throw data_error("'{}' is not a run directory: it holds neither metrics.jsonl nor result.json.",
                     directory.string());
  }
  const std::string config = fs::exists(files.config()) ? read_file(files.config()) : "";
  run.settings = resolved_settings(config);
  run.name = run.setting("run.name");
  if (run.name.empty()) run.name = folder_name(directory);
  run.metrics = read_metrics(files.metrics());
  run.result = ResultValue(files.result());
  run.ledger = ResultValue(files.ledger());
  run.quantize = ResultValue(files.quantize_result());
  run.calibration = ResultValue(files.calibration());
  run.ensemble = ResultValue(files.ensemble());
  run.ttt = ResultValue(files.ttt_result());
  if (run.ttt.flag("void")) {
    run.ttt_void = run.ttt.text("reason");
    run.ttt = {};
  }
  run.evaluations = read_evaluations(files.evaluations());
  run.trials = read_trials(files);
  run.samples = read_samples(files.samples());
  run.doubts = find_doubts(run, config);
  return run;
}

std::vector<RunRecord> read_runs(const std::vector<std::string>& directories) {
  std::vector<RunRecord> runs;
  for (const std::string& directory : directories) runs.push_back(read_run(directory));
  return runs;
}

}  // namespace mulligan::report
