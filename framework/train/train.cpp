#include "framework/train/train.h"

#include "framework/core/error.h"
#include "framework/run/run_files.h"
#include "framework/run/run_plugins.h"
#include "framework/run/run_ranks.h"
#include "framework/run/strict_rules.h"
#include "framework/train/resume.h"
#include "framework/train/trainer.h"

namespace mulligan {
namespace {

// Where the first rank's files are begun or continued.
ResumePoint open_run_directory(const LoadedConfig& loaded, PluginHost& host, const TrainOptions& options,
                               Attempt attempt, const std::vector<DirectoryLock>& locks) {
  const RunConfig& config = loaded.config;
  // What killed processes left: from here on no other process writes there.
  const std::string recovered = ReplacedRun(config.run.directory, config.checkpoint.directory).recover();
  remove_checkpoint_leftovers(config.checkpoint.directory);
  remove_temporary_leftovers(config.run.directory);
  const bool again = goes_on(noted_attempt(config.run.directory), attempt);
  ResumePoint resume;
  if (again) resume = find_resume_point(loaded, host, "auto");
  // Where no attempt has come to a checkpoint of its own, what was asked for still holds.
  const bool anew = again && !resume.checkpoint;
  if (anew) resume.notes.clear();
  if (!again || (anew && !options.resume.empty())) resume = find_resume_point(loaded, host, options.resume);
  resume.replaces = options.overwrite && !again;
  resume.attempt = std::move(attempt);
  if (!recovered.empty()) resume.notes.insert(resume.notes.begin(), recovered);
  for (const DirectoryLock& lock : locks) {
    if (!lock.warning().empty()) resume.notes.push_back("warning: " + lock.warning());
  }
  return resume;
}

// Gives all ranks the first rank's point of resuming: its manifest now, its tensors when they are loaded.
void share_resume_point(ResumePoint& resume, HostGroup& group) {
  if (group.world_size() == 1) return;
  const bool has = group.agree(resume.checkpoint.has_value()) != 0;
  resume.in_place = group.agree(resume.in_place) != 0;
  if (!has) return;
  const bool first = group.rank() == 0;
  const std::string path = group.broadcast(first ? resume.checkpoint->path.string() : "");
  const std::string manifest = group.broadcast(first ? to_json(resume.checkpoint->manifest) : "");
  if (first) return;
  resume.checkpoint = Checkpoint{path, manifest_from_json(manifest, path), {}};
}

void require_own_start(const RunConfig& config) {
  const std::string borrowed = borrowed_start(config);
  if (config.ledger.rules != LedgerRules::strict || borrowed.empty()) return;
  throw config_error("{}; under ledger.rules = \"strict\" there would be no result.", borrowed);
}

}  // namespace

RunResult train(LoadedConfig& loaded, PluginHost& host, const TrainOptions& options, RunRanks& ranks) {
  resolve_run_plugins(loaded, host);
  if (options.overwrite && !options.resume.empty()) {
    throw config_error("a run is either continued (--resume) or started anew (--overwrite); leave one out.");
  }
  require_own_start(loaded.config);
  ranks.require_same_run(loaded, host);
  Attempt attempt = own_attempt(ranks);
  std::vector<DirectoryLock> locks;
  ResumePoint resume;
  if (ranks.first()) {
    locks = lock_run(loaded.config, "train");
    resume = open_run_directory(loaded, host, options, std::move(attempt), locks);
  }
  share_resume_point(resume, ranks.group());
  ranks.note_restarts(resume.attempt.restarts);
  const auto communicator = [&](Backend& backend) { return ranks.communicator(loaded, host, backend); };
  return Trainer(loaded, host, ranks, options, std::move(resume), communicator).run();
}

RunResult train(LoadedConfig& loaded, PluginHost& host, const TrainOptions& options) {
  RunRanks alone;
  return train(loaded, host, options, alone);
}

}  // namespace mulligan
