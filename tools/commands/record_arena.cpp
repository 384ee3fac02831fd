#include "tools/commands/record_parts.h"

#include <filesystem>

#include "framework/core/directory_lock.h"
#include "framework/core/stop_request.h"
#include "framework/run/run_files.h"
#include "framework/run/run_plugins.h"
#include "tools/commands/tool_commands.h"

namespace mulligan {

void make_arena_record(RecordArguments options) {
  PluginHost host = options.run.plugin_host();
  set_micro_batches(options.run, options.ranks);
  const std::filesystem::path folder = folder_of_runs(options.run, options.runs);
  // Strict rules are the challenge's; [arena] has this benchmark's.
  const RecordStages stages{options.run, options.ranks, ".", options.console, false};
  std::vector<std::string> directories;
  {
    DirectoryLock lock(folder, "record");
    require_one_program(folder);
    for (const record::SeedRun& run : seed_runs(folder, options.seeds)) {
      LoadedConfig loaded = stages.load(run);
      resolve_run_plugins(loaded, host);
      if (record::next_stage(run, config_digest(loaded), loaded.config.ledger) == record::SeedStage::train)
        stages.make(record::SeedStage::train, run);
      directories.push_back(run.directory.string());
    }
    throw_if_stopping();
  }
  decide_arena(directories, options.reference, options.json);
}

}  // namespace mulligan
