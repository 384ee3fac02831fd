#include "launch/commands/run_results.h"

#include <fmt/format.h>

#include "framework/artifact/artifact_run.h"
#include "framework/core/error.h"
#include "framework/core/printable.h"
#include "framework/report/run_directory.h"
#include "framework/report/trials.h"
#include "launch/commands/trial.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

void warn(const char* what, const Error& error) {
  print_warning(fmt::format("{}: {}", what, printable(error.what())));
}

std::string mode_text(const EvalConfig& eval, const EvalResult& score) {
  if (eval.mode == EvalMode::rows) {
    return fmt::format("rows of {} tokens{}", eval.sequence_length, score.masked ? ", masked tokens" : "");
  }
  return fmt::format("windows of {} tokens every {}", eval.sequence_length, eval.stride);
}

EvaluationRecord evaluation_record(const fs::path& path, const WeightSource& source, const std::string& mode,
                                   const EvalResult& score) {
  const fs::path weights = weights_of(path);
  return {weights.filename().string(),
          is_artifact(weights),
          mode,
          score.val_loss_nats,
          score.val_bpb,
          score.tokens,
          score.bytes,
          score.seconds,
          source.origin.sha256,
          score.byte_rule};
}

void note_trial(const char* command, const fs::path& run, const fs::path& path, const WeightSource& source,
                const std::string& mode, const EvalResult& score,
                const std::vector<TrialRecord::Change>& changes) {
  TrialRecord trial;
  trial.command = command;
  trial.score = evaluation_record(path, source, mode, score);
  trial.changes = changes;
  trial.name = trial_name(command, trial.score.weights, changes);
  try {
    trial.files_sha256 = files_digests(source.loaded.config.data);
    write_trial(RunFiles{run}, trial);
    fmt::print("other settings               '{}': not a score of the run, because of {}\n",
               (RunFiles{run}.trials() / (trial.name + ".json")).string(), changed_keys(changes));
  } catch (const Error& error) {
    warn("the score is not in the run directory", error);
  }
}

}  // namespace

fs::path weights_of(const fs::path& path) {
  return fs::is_directory(path) ? RunFiles{path}.weights() : path;
}

fs::path run_directory_of(const fs::path& path) {
  const fs::path directory = fs::is_directory(path) ? path : fs::absolute(path).parent_path();
  if (!fs::exists(RunFiles{directory}.metrics())) return {};
  return fs::is_directory(path) ? path : path.has_parent_path() ? path.parent_path() : fs::path(".");
}

void note_evaluation(const fs::path& run, const fs::path& path, const WeightSource& source,
                     const EvalResult& score, const std::vector<TrialRecord::Change>& changes) {
  const std::string mode = mode_text(source.loaded.config.eval, score);
  if (!changes.empty()) return note_trial("eval", run, path, source, mode, score, changes);
  try {
    add_evaluation(RunFiles{run}.evaluations(), evaluation_record(path, source, mode, score));
  } catch (const Error& error) {
    warn("the score is not in the run directory", error);
  }
}

void note_ttt_trial(const fs::path& run, const fs::path& path, const WeightSource& source,
                    const EvalResult& score, const std::vector<TrialRecord::Change>& changes) {
  note_trial("ttt", run, path, source, "test-time training", score, changes);
}

}  // namespace mulligan
