// The logs that are published with results of the optimiser benchmark (docs/arena.md, "Results").
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/stats/arena_rules.h"

namespace mulligan::stats {

// A log: a script's code up to a line of equals signs, then what it printed. A line "step:S/N val_loss:X NAME:Y ..." is
// a validation after S of N steps; a line whose S is less than the one before begins another run.
struct ArenaLog {
  std::string code;
  // Each has a validation or more; "FILE", or "FILE run 2" where there are several.
  std::vector<ArenaRun> runs;
  std::vector<std::int64_t> planned_steps;  // N of each run
};

// `name` stands for the file, `metric` is the NAME of the losses. Throws data_error, naming the line, for a validation
// that cannot be read or lacks the metric, a run with two N or two losses at a step, and a log without any validation.
ArenaLog parse_arena_log(std::string_view text, const std::string& name, const std::string& metric);

// The runs of several logs as those of one result. Throws data_error where their N differ; `notes` gets a sentence,
// without full stop, where their code does.
std::vector<ArenaRun> runs_of_arena_logs(const std::vector<std::string>& paths, const std::string& metric,
                                         std::vector<std::string>& notes);

}  // namespace mulligan::stats
