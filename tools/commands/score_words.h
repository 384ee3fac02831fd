// Scores named on a command line: by number, run directory or submission.
#pragma once

#include <string>
#include <vector>

#include "tools/report_page/run_record.h"

namespace mulligan {

struct NamedScores {
  std::vector<double> bpb;              // in the order of the words
  std::vector<report::RunRecord> runs;  // those that were run directories
};

// Each word is a number (bits per byte), a run directory or the folder of a submission. A run directory counts with its
// `metric` (empty: the last that all have); of a submission all seeds count. Throws Error if a word is none of these, or if two
// runs were not scored on the same tokens, have the same seed, or differ in other settings.
NamedScores read_scores(const std::vector<std::string>& words, const std::string& metric);

}  // namespace mulligan
