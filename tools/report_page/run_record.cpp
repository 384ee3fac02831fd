#include "tools/report_page/run_record.h"

#include <fmt/format.h>
#include <algorithm>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/json_file.h"
#include "framework/core/parse_number.h"

namespace mulligan::report {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

struct ResultValue::File {
  fs::path path;
  Json json;
};

ResultValue::ResultValue(const fs::path& path) {
  const bool exists = fs::exists(path);
  const auto whole = [](const Json& json) { return json; };
  file_ = std::make_shared<File>(File{path, exists ? read_json_object<Json>(path, whole) : Json()});
  if (exists) json_ = &file_->json;
}

ResultValue ResultValue::of(Json json) {
  const auto file = std::make_shared<File>(File{"the result", std::move(json)});
  return {file, &file->json};
}

ResultValue::ResultValue(std::shared_ptr<const File> file, const Json* json)
    : file_(std::move(file)), json_(json->is_null() ? nullptr : json) {}

void ResultValue::refuse(const std::string& why) const {
  throw data_error("'{}' is not as mulligan writes it ({}); make it anew or remove it.",
                   file_ ? file_->path.string() : "a result", why);
}

template <typename T>
std::optional<T> ResultValue::as(std::string_view path) const {
  const ResultValue member = (*this)[path];
  if (!member) return {};
  try {
    return member.json_->get<T>();
  } catch (const nlohmann::json::exception& error) {
    refuse(error.what());
  }
}

ResultValue ResultValue::operator[](std::string_view path) const {
  if (path.empty()) return *this;
  const std::string_view key = path.substr(0, path.find('/'));
  if (json_ == nullptr || json_->is_array()) return {};
  if (!json_->is_object()) refuse(fmt::format("{} is asked of {}, which is no object", key, json_->dump()));
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
  const auto found = std::ranges::find(settings, key, &ResolvedSetting::key);
  if (found == settings.end()) return {};
  const std::string& value = found->value;
  return value.size() >= 2 && value.front() == '"' ? value.substr(1, value.size() - 2) : value;
}

double RunRecord::number(std::string_view key) const {
  return parse_number<double>(setting(key)).value_or(0);
}

std::optional<double> RunRecord::figure(std::string_view name) const {
  if (name == "quantised_bpb") {
    const EvaluationRecord* score = quantized();
    return score && score->bytes > 0 ? std::optional(score->val_bpb) : std::nullopt;
  }
  if (name == "ttt_bpb") return scores_bits(ttt) ? ttt_score(ttt) : std::nullopt;
  return (name == "artifact_bytes" ? quantize : result).number(name);
}

bool RunRecord::fills_in_masked() const {
  return result.flag("val_masked") || number("model.masking.share") > 0;
}

const EvaluationRecord* RunRecord::quantized() const {
  const auto newest = std::find_if(evaluations.rbegin(), evaluations.rend(),
                                   [](const EvaluationRecord& score) { return score.artifact; });
  return newest == evaluations.rend() ? nullptr : &*newest;
}

namespace {

// `config` is the text of config.toml.
void find_doubts(RunRecord& run, std::string_view config) {
  const auto doubt = [&](const fs::path& file, const char* what) {
    run.doubts.push_back(fmt::format("'{}' {}", file.string(), what));
  };
  // Whether both are known and differ.
  const auto differ = [](const std::string& a, const std::string& b) {
    return !a.empty() && !b.empty() && a != b;
  };
  if (!config.empty() && differ(run.result.text("config_sha256"), settings_digest(config)))
    doubt(run.files.config(), "holds other settings than those that the run was made with");
  const std::string weights = run.result.text("weights_sha256"), scored = run.ttt.text("weights_sha256");
  const std::string artifact = run.quantize.text("artifact_sha256");
  if (differ(run.quantize.text("weights_sha256"), weights))
    doubt(run.files.quantize_result(), "is of other weights than the run's");
  if (differ(scored, weights) && scored != artifact) {
    doubt(run.files.ttt_result(), "is of weights that are neither the run's nor its artifact");
    run.ttt = {};
  }
  // A score of an earlier artifact stays a line of the file, and is not this run's.
  std::erase_if(run.evaluations, [&](const EvaluationRecord& score) {
    return score.artifact && differ(score.weights_sha256, artifact);
  });
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
  if (run.name.empty()) {
    const fs::path whole = fs::absolute(directory).lexically_normal();
    run.name = (whole.filename().empty() ? whole.parent_path() : whole).filename().string();
  }
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
  find_doubts(run, config);
  return run;
}

std::vector<RunRecord> read_runs(const std::vector<std::string>& directories) {
  std::vector<RunRecord> runs;
  for (const std::string& directory : directories) runs.push_back(read_run(directory));
  return runs;
}

std::string doubts_text(const std::vector<RunRecord>& runs) {
  std::string text;
  for (const RunRecord& run : runs) {
    for (const std::string& doubt : run.doubts) text += fmt::format("warning: {}\n", doubt);
  }
  return text.empty() ? text : text + "\n";
}

void require_no_doubts(const std::vector<RunRecord>& runs) {
  for (const RunRecord& run : runs) {
    if (!run.doubts.empty())
      throw data_error("{}; make that result again, or leave the run out.", run.doubts.front());
  }
}

}  // namespace mulligan::report
