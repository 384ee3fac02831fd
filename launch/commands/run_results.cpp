#include "launch/commands/run_results.h"

#include <fmt/format.h>

#include "framework/artifact/artifact_run.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/data/shard.h"
#include "framework/report/run_directory.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

std::string mode_text(const std::string& command, const EvalConfig& eval, const EvalResult& score) {
  if (command == "ttt") return "test-time training";
  if (eval.mode == EvalMode::rows) {
    return fmt::format("rows of {} tokens{}", eval.sequence_length, score.masked ? ", masked tokens" : "");
  }
  return fmt::format("windows of {} tokens every {}", eval.sequence_length, eval.stride);
}

// Digests of the validation data and the tokenizer of `data`.
std::vector<std::pair<std::string, std::string>> files_digests(const DataConfig& data) {
  std::vector<std::pair<std::string, std::string>> digests;
  const auto add = [&](const fs::path& file) {
    digests.emplace_back(file.string(), sha256_hex_of_file(file));
  };
  for (const auto& shard : find_shards({data.validation}, DataSplit::validation)) add(shard);
  if (!data.tokenizer.empty()) add(data.tokenizer);
  return digests;
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

fs::path trial_folder(const std::string& command, const fs::path& run, const fs::path& path,
                      const std::vector<TrialRecord::Change>& changes) {
  return RunFiles{run}.trials() / trial_name(command, weights_of(path).filename().string(), changes);
}

void note_score(const std::string& command, const fs::path& run, const fs::path& path,
                const WeightSource& source, const EvalResult& score,
                const std::vector<TrialRecord::Change>& changes) {
  const fs::path weights = weights_of(path);
  const RunConfig& config = source.loaded.config;
  const EvaluationRecord record{score, weights.filename().string(), source.origin.sha256,
                                is_artifact(weights), mode_text(command, config.eval, score)};
  try {
    if (changes.empty()) return add_evaluation(RunFiles{run}.evaluations(), record);
    const fs::path folder = trial_folder(command, run, path, changes);
    write_trial(RunFiles{run},
                {folder.filename().string(), command, record, changes, files_digests(config.data)});
    fmt::print("other settings               '{}.json': not a score of the run, because of {}\n",
               folder.string(), changed_keys(changes));
  } catch (const Error& error) {
    print_warning(fmt::format("the score is not in the run directory: {}", error.what()));
  }
}

}  // namespace mulligan
