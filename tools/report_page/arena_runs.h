// Run directories as runs of a result of the optimiser benchmark (docs/arena.md, "Results").
#pragma once

#include <vector>

#include "tools/report_page/run_record.h"
#include "tools/stats/arena_rules.h"

namespace mulligan::report {

// The validation losses of `runs`, the runs of one result. Throws Error for runs that are not finished, have doubts
// (run_observations.h), differ in more than the seed or were scored on other targets, and where a finished run of the same
// settings in the same folder is left out. `notes` gets a sentence, without full stop, where the settings are not those of
// the benchmark.
std::vector<stats::ArenaRun> arena_runs(const std::vector<RunRecord>& runs, std::vector<std::string>& notes);

}  // namespace mulligan::report
