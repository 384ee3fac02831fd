// Checks of the rows that a run learns from: D19 and D31.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/data/loader.h"
#include "framework/data/segments.h"
#include "tools/doctor/finding.h"

namespace mulligan::doctor {

// D19: the target of each position is the token that follows it, as far as the row holds both, and the
// targets are not the inputs. `repeat_share`: how often a token of the corpus equals the one before it.
Finding check_targets(const std::vector<Batch>& rows, double repeat_share);
// The same of rows whose tokens are hidden: as many as [model.masking] says, and hidden.
Finding check_masked_targets(const std::vector<Batch>& rows, const MaskingOptions& masking);

// D31: behind the last row of the data comes the first again: the loader makes up none. `planned_spans`:
// rows that the run will read; 0 where a time budget ends it.
Finding check_end_of_data(const LoaderOptions& options, std::int64_t planned_spans);

}  // namespace mulligan::doctor
