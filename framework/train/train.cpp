#include "framework/train/train.h"

#include "framework/core/error.h"
#include "framework/dist/communicator.h"
#include "framework/run/replaced_run.h"
#include "framework/run/run_files.h"
#include "framework/run/run_plugins.h"
#include "framework/train/resume.h"
#include "framework/train/trainer.h"

namespace mulligan {

RunResult train(LoadedConfig& loaded, PluginHost& host, const TrainOptions& options) {
  resolve_run_plugins(loaded, host);
  if (options.overwrite && !options.resume.empty()) {
    throw config_error("a run is either continued (--resume) or started anew (--overwrite); leave one out.");
  }
  const RunConfig& config = loaded.config;
  const std::vector<DirectoryLock> locks = lock_run(config, "train");
  // What killed processes left: from here on nobody else is at work there.
  const std::string recovered = ReplacedRun(config.run.directory, config.checkpoint.directory).recover();
  remove_checkpoint_leftovers(config.checkpoint.directory);
  remove_temporary_leftovers(config.run.directory);
  ResumePoint resume = find_resume_point(loaded, host, options.resume);
  if (!recovered.empty()) resume.notes.insert(resume.notes.begin(), recovered);
  for (const DirectoryLock& lock : locks) {
    if (!lock.warning().empty()) resume.notes.push_back("warning: " + lock.warning());
  }
  const std::unique_ptr<Communicator> communicator = make_self_communicator();
  return Trainer(loaded, host, *communicator, options, std::move(resume)).run();
}

}  // namespace mulligan
