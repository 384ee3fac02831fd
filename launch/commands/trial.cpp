#include "launch/commands/trial.h"

#include "framework/config/config_report.h"
#include "framework/core/file.h"
#include "framework/data/shard.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

bool moves_score(const std::string& key, ScoreCommand command) {
  if (key == "data.train" || key == "data.prefetch" || key == "backend.threads") return false;
  if (key == "train.compute_dtype") return true;
  for (const char* table : {"data.", "model.", "eval.", "backend."}) {
    if (key.starts_with(table)) return true;
  }
  if (command == ScoreCommand::eval || key == "ttt.audit") return false;
  return key.starts_with("ttt.") || key == "run.seed";
}

// The same file, as far as the system can tell.
bool same_file(const fs::path& a, const fs::path& b) {
  std::error_code failed;
  return fs::equivalent(a, b, failed) && !failed;
}

}  // namespace

std::vector<TrialRecord::Change> changes_from_run(const fs::path& run, const fs::path& weights,
                                                  const LoadedConfig& used, ScoreCommand command) {
  const RunFiles files{run};
  std::vector<TrialRecord::Change> changes;
  const bool own = fs::is_directory(weights) || same_file(weights, files.weights()) ||
                   same_file(weights, files.artifact());
  if (!own) changes.push_back({"weights", "", toml_quoted(weights.filename().string())});
  if (!fs::exists(files.config())) {
    changes.push_back({"configuration", "", toml_quoted(used.file)});
    return changes;
  }
  for (const ConfigDifference& d : diff_configs(load_run_config(files.config().string()), used)) {
    if (moves_score(d.key, command)) changes.push_back({d.key, d.left, d.right});
  }
  return changes;
}

std::vector<std::pair<std::string, std::string>> files_digests(const DataConfig& data) {
  std::vector<std::pair<std::string, std::string>> digests;
  const auto add = [&](const fs::path& file) {
    digests.emplace_back(file.string(), sha256_hex_of_file(file));
  };
  for (const auto& shard : find_shards({data.validation})) add(shard);
  if (!data.tokenizer.empty()) add(data.tokenizer);
  return digests;
}

fs::path trial_folder(const fs::path& run, const std::string& name) {
  return RunFiles{run}.trials() / name;
}

}  // namespace mulligan
