#include "tools/report_page/run_record.h"

#include <charconv>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/report/json_lines.h"
#include "tools/report_page/result_files.h"
#include "tools/report_page/run_doubts.h"

namespace mulligan::report {
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
    run.ttt_void = run.ttt->void_reason;
    if (!run.ttt_void.empty()) run.ttt.reset();
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
