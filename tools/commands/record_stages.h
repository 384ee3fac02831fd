// The stages of one run of a record, each by a command of this program in a process of its own.
#pragma once

#include <string>
#include <vector>

#include "launch/commands/run_options.h"
#include "tools/record/seed_run.h"

namespace mulligan {

struct RecordStages {
  const RunOptions& run;   // the configuration, with overrides that hold for every seed
  int ranks = 1;           // of training and test-time training, on this machine
  std::string source;      // tree whose code is counted
  ConsoleOptions console;  // where the stages' lines go besides the seed's log

  // The settings of this seed's run: run.overrides, then its seed, folder and strict rules.
  std::vector<std::string> overrides(const record::SeedRun& run) const;
  // Does a stage from where it was left; what it says goes to the end of the seed's log. Throws what the
  // command ended with, naming seed and stage; where a signal was noted (StopSignals), an Error of
  // ExitCode::interrupted once the stage has saved what it has.
  void make(record::SeedStage stage, const record::SeedRun& run) const;
};

}  // namespace mulligan
