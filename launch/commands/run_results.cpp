#include "launch/commands/run_results.h"

#include <fmt/format.h>

#include <cstdio>

#include "framework/artifact/artifact_run.h"
#include "framework/core/error.h"
#include "framework/report/evaluations_file.h"
#include "framework/report/page/write_report.h"
#include "framework/report/run_directory.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

void warn(const char* what, const Error& error) {
  std::fflush(stdout);
  fmt::print(stderr, "warning: {}: {}\n", what, error.what());
}

std::string mode_text(const EvalConfig& eval) {
  if (eval.mode == EvalMode::rows) return fmt::format("rows of {} tokens", eval.sequence_length);
  return fmt::format("windows of {} tokens every {}", eval.sequence_length, eval.stride);
}

}  // namespace

fs::path run_directory_of(const fs::path& path) {
  const fs::path directory = fs::is_directory(path) ? path : fs::absolute(path).parent_path();
  if (!fs::exists(RunFiles{directory}.metrics())) return {};
  return fs::is_directory(path) ? path : path.has_parent_path() ? path.parent_path() : fs::path(".");
}

void note_evaluation(const fs::path& run, const fs::path& path, const WeightSource& source,
                     const EvalResult& score) {
  const fs::path weights = fs::is_directory(path) ? RunFiles{path}.weights() : path;
  EvaluationRecord record;
  record.weights = weights.filename().string();
  record.artifact = is_artifact(weights);
  record.mode = mode_text(source.loaded.config.eval);
  record.val_loss_nats = score.val_loss_nats;
  record.val_bpb = score.val_bpb;
  record.val_tokens = score.tokens;
  record.val_bytes = score.bytes;
  record.seconds = score.seconds;
  try {
    add_evaluation(RunFiles{run}.evaluations(), record);
  } catch (const Error& error) {
    warn("the score is not in the run directory", error);
  }
}

void refresh_report(const fs::path& run) {
  if (run.empty() || !fs::exists(RunFiles{run}.metrics())) return;
  try {
    report::write_report(run);
    fmt::print("report                       {}\n", RunFiles{run}.report().string());
  } catch (const Error& error) {
    warn("the report was not written", error);
  }
}

}  // namespace mulligan
