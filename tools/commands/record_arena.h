// mulligan record --track optimization: the runs of one result of the optimiser benchmark, and their decision.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launch/commands/run_options.h"

namespace mulligan {

inline constexpr const char* arena_record_track = "optimization";

struct ArenaRecordOptions {
  RunOptions run;
  ConsoleOptions console;
  std::vector<std::int64_t> seeds;  // distinct
  std::string runs;                 // folder of the runs; empty: folder_of_runs()
  int ranks = 1;
  std::vector<std::string> old_runs;  // run directories of the result to be better than
  std::string json;                   // file for the figures; empty: none
};

// Trains the seeds that are not trained yet and decides as `mulligan stats arena` does. Throws config_error where the folder
// holds runs of other settings or of another program, what a training ended with, run_error where the result is rejected.
void make_arena_record(ArenaRecordOptions options);

}  // namespace mulligan
