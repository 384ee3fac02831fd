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

// Each word is a number (bits per byte), a run directory whose `metric` counts (empty: the last that all
// have), or the folder of a submission, whose seeds all count. Throws Error where one is none of these, where
// two runs were not scored on the same tokens, have the same seed, or other settings that differ.
NamedScores read_scores(const std::vector<std::string>& words, const std::string& metric);

}  // namespace mulligan
