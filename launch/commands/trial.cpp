#include "launch/commands/trial.h"

#include <fmt/format.h>

#include "framework/artifact/artifact_run.h"
#include "framework/config/config_report.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/sha256.h"
#include "framework/data/shard.h"
#include "framework/report/run_directory.h"
#include "framework/run/run_files.h"
#include "framework/run/weight_origin.h"
#include "launch/program_parts.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

// The same file, as far as the system can tell.
bool same_file(const fs::path& a, const fs::path& b) {
  std::error_code failed;
  return fs::equivalent(a, b, failed) && !failed;
}

// Data that was prepared anew in place has the old names.
void add_changed_contents(const RunConfig& config, const WeightOrigin& origin,
                          std::vector<TrialRecord::Change>& changes) {
  if (config.data.validation.empty()) return;  // refused soon
  const DataIdentity now = load_validation(config.data, config.model.vocabulary, config.eval.tokens).data;
  if (origin.data.validation.sha256.empty() || validation_difference(origin.data, now).empty()) return;
  changes.push_back({"contents of data.validation", toml_quoted(short_digest(origin.data.validation.sha256)),
                     toml_quoted(short_digest(now.validation.sha256))});
}

// A file of the run's name is the run's where it holds what the run has recorded.
void add_other_weights(const RunFiles& run, const WeightOrigin& origin,
                       std::vector<TrialRecord::Change>& changes) {
  const bool artifact = origin.kind == WeightOrigin::Kind::artifact;
  const std::string recorded = artifact ? recorded_artifact_sha256(run) : recorded_weights_sha256(run);
  if (!recorded.empty() && recorded == origin.sha256) return;
  changes.push_back({artifact ? "contents of the artifact" : "contents of the weights",
                     toml_quoted(short_digest(recorded)), toml_quoted(short_digest(origin.sha256))});
}

// Under strict rules a run's folder has no scores of others. Its own configuration counts, too: an artifact brings one.
void refuse_other_weights(const LoadedConfig& used, const LoadedConfig* run, const fs::path& weights,
                          const std::vector<TrialRecord::Change>& changes) {
  const bool asked = used.core.at("ledger.rules").origin.kind == Origin::Kind::command_line;
  const bool strict = used.config.ledger.rules == LedgerRules::strict ||
                      (!asked && run != nullptr && run->config.ledger.rules == LedgerRules::strict);
  if (!strict) return;
  throw data_error(
      "'{}' is not what its run has made and booked ({}), and ledger.rules = \"strict\" scores nothing else there; bring "
      "back the run's own file, or score this one under other settings with --set ledger.rules=open",
      weights.string(), changed_keys(changes));
}

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

OpenedScore open_for_score(const fs::path& run, const std::string& weights, const RunOptions& options,
                           std::string_view command) {
  std::optional<DirectoryLock> lock;
  if (!run.empty()) {
    lock.emplace(run, command, DirectoryLock::Kind::shared);
    remove_temporary_leftovers(run);
  }
  OpenedScore opened{run, std::move(lock), open_weights(weights, options), options.plugin_host(), {}};
  if (run.empty()) return opened;
  opened.changes =
      changes_from_run(run, weights, opened.source.loaded, opened.source.origin, ScoreCommand::eval);
  return opened;
}

void keep_in_run(const OpenedScore& score, const fs::path& file, const std::string& text,
                 const ConsoleOptions& console) {
  if (score.run.empty()) return;
  if (!score.changes.empty()) {
    if (!console.quiet)
      fmt::print("not kept in the run directory, because of {}\n", changed_keys(score.changes));
    return;
  }
  write_file_atomically(file, text);
  refresh_report(score.run, console);
}

std::vector<TrialRecord::Change> changes_from_run(const fs::path& run, const fs::path& weights,
                                                  const LoadedConfig& used, const WeightOrigin& origin,
                                                  ScoreCommand command) {
  const RunFiles files{run};
  std::vector<TrialRecord::Change> changes;
  const bool own = fs::is_directory(weights) || same_file(weights, files.weights()) ||
                   same_file(weights, files.artifact());
  if (!own) changes.push_back({"weights", "", toml_quoted(weights.filename().string())});
  if (own) add_other_weights(files, origin, changes);
  std::optional<LoadedConfig> trained;
  if (fs::exists(files.config())) trained = load_run_config(files.config().string());
  if (!changes.empty()) refuse_other_weights(used, trained ? &*trained : nullptr, weights, changes);
  if (!trained) {
    changes.push_back({"configuration", "", toml_quoted(used.file)});
    return changes;
  }
  for (const ConfigDifference& d : diff_configs(*trained, used)) {
    if (moves_score(d.key, command)) changes.push_back({d.key, d.left, d.right});
  }
  add_changed_contents(used.config, origin, changes);
  return changes;
}

}  // namespace mulligan
