#include "launch/commands/trial.h"
#include "launch/program_parts.h"

#include "framework/config/config_report.h"
#include "framework/core/file.h"
#include "framework/core/sha256.h"
#include "framework/eval/evaluate.h"
#include "framework/run/replaced_run.h"
#include "framework/run/weight_origin.h"

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
  const DataComparison comparison = compare_validation(origin.data, now);
  if (!comparison.known || (comparison.same_shards && comparison.same_bytes)) return;
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

}  // namespace

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
