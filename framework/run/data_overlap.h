// What a run learns from, held against what it is scored on, before it begins.
#pragma once

#include <filesystem>
#include <vector>

#include "framework/config/run_config.h"
#include "framework/data/text_overlap.h"
#include "framework/eval/evaluate.h"

namespace mulligan {

class RunLog;

// Measures the overlap of the shards with the validation text and says it in `log`, as a warning where it is
// beyond the limits. Throws data_error for such an overlap under strict rules.
TextOverlap overlap_with_validation(const RunConfig& config, const std::vector<std::filesystem::path>& shards,
                                    const ValidationSet& validation, RunLog& log);

}  // namespace mulligan
