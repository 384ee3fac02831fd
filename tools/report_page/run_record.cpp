#include "tools/report_page/run_record.h"

#include <charconv>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/json_file.h"
#include "tools/report_page/result_files.h"
#include "tools/report_page/run_observations.h"

namespace mulligan::report {
namespace {

using Json = nlohmann::ordered_json;

CalibrationResult::Figures calibration_figures(const Json& json) {
  return {json.at("name"),
          json.at("items"),
          json.at("accuracy"),
          json.at("confidence"),
          json.at("ece"),
          json.at("adaptive_ece"),
          json.at("mce"),
          json.at("brier"),
          json.at("loss_nats"),
          number_or_null(json.at("swagger")),
          number_or_null(json.at("swagger_gap"))};
}

CalibrationResult::Set set_of(const Json& json) {
  CalibrationResult::Set set{calibration_figures(json), {}, {}};
  for (const Json& bin : json.at("bins")) {
    set.bins.push_back(
        {bin.at("low"), bin.at("high"), bin.at("count"), bin.at("confidence"), bin.at("accuracy")});
  }
  for (const Json& subject : json.at("subjects")) set.subjects.push_back(calibration_figures(subject));
  return set;
}

}  // namespace

CalibrationResult read_calibration_result(const std::filesystem::path& path) {
  return read_json_object<Json>(
      path,
      [](const Json& json) {
        CalibrationResult result{json.at("weights"), {}};
        for (const Json& set : json.at("sets")) result.sets.push_back(set_of(set));
        return result;
      },
      "make it again with mulligan probe calibration, or remove it");
}

namespace {

using Json = nlohmann::ordered_json;

EnsembleResult::Figures figures_of(const Json& json) {
  return {json.at("loss_nats"), json.at("accuracy"), number_or_null(json.at("bpb")),
          number_or_null(json.at("ece"))};
}

}  // namespace

EnsembleResult read_ensemble_result(const std::filesystem::path& path) {
  return read_json_object<Json>(
      path,
      [](const Json& json) {
        EnsembleResult result;
        result.weights = json.at("weights");
        result.plugin = json.at("plugin");
        result.settings = json.at("settings");
        result.members = json.at("members");
        result.seed = json.at("seed");
        result.tokens = json.at("tokens");
        result.model = figures_of(json.at("model"));
        result.reference = figures_of(json.at("reference"));
        result.ensemble = figures_of(json.at("ensemble"));
        for (const Json& loss : json.at("member_loss_nats"))
          result.member_loss_nats.push_back(loss.get<double>());
        for (const Json& share : json.at("member_accuracy"))
          result.member_accuracy.push_back(share.get<double>());
        result.mean_loss_nats = json.at("member_mean_loss_nats");
        result.ambiguity_nats = json.at("ambiguity_nats");
        result.disagreement = json.at("disagreement");
        result.member_bytes = json.at("member_bytes");
        result.kept_bytes = json.at("kept_bytes");
        result.all_bytes = json.at("all_bytes");
        return result;
      },
      "make it again with mulligan probe ensemble, or remove it");
}

namespace {

namespace fs = std::filesystem;

std::string folder_name(const fs::path& directory) {
  const fs::path whole = fs::absolute(directory).lexically_normal();
  return (whole.filename().empty() ? whole.parent_path() : whole).filename().string();
}

}  // namespace

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
  return (result && result->val_masked) || number("model.masking.share") > 0;
}

const EvaluationRecord* RunRecord::quantized() const {
  for (auto evaluation = evaluations.rbegin(); evaluation != evaluations.rend(); ++evaluation) {
    if (evaluation->artifact) return &*evaluation;
  }
  return nullptr;
}

RunRecord read_run(const fs::path& directory) {
  RunRecord run;
  run.files.directory = directory;
  const RunFiles& files = run.files;
  if (!fs::exists(files.metrics()) && !fs::exists(files.result())) {
    throw data_error("'{}' is not a run directory: it holds neither metrics.jsonl nor result.json.",
                     directory.string());
  }
  std::string config;
  if (fs::exists(files.config())) config = read_file(files.config());
  run.settings = resolved_settings(config);
  run.name = run.setting("run.name");
  if (run.name.empty()) run.name = folder_name(directory);
  run.metrics = read_metrics(files.metrics());
  if (fs::exists(files.result())) run.result = read_training_result(files.result());
  if (fs::exists(files.evaluations())) run.evaluations = read_evaluations(files.evaluations());
  run.trials = read_trials(files);
  run.samples = read_samples(files.samples());
  if (fs::exists(files.ledger())) run.ledger = read_ledger_result(files.ledger());
  if (fs::exists(files.quantize_result())) run.quantize = read_quantize_result(files.quantize_result());
  if (fs::exists(files.calibration())) run.calibration = read_calibration_result(files.calibration());
  if (fs::exists(files.ensemble())) run.ensemble = read_ensemble_result(files.ensemble());
  if (fs::exists(files.ttt_result())) {
    run.ttt = read_ttt_result(files.ttt_result());
    run.ttt_invalid = run.ttt->invalid_reason;
    if (!run.ttt_invalid.empty()) run.ttt.reset();
  }
  run.doubts = find_doubts(run, config);
  return run;
}

std::vector<RunRecord> read_runs(const std::vector<std::string>& directories) {
  std::vector<RunRecord> runs;
  for (const std::string& directory : directories) runs.push_back(read_run(directory));
  return runs;
}

}  // namespace mulligan::report
