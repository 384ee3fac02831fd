// What speaks against the figures of a run directory.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/report_page/run_record.h"

namespace mulligan::report {

// Files that were changed after they were written, or that are about other weights than the run's; one sentence
// without full stop each. `config` is the text of config.toml. Takes a score of test-time training and scores of
// artifacts that belong to other weights out of `run`. A digest is no signature: whoever forges a result with its
// digest is not found here.
std::vector<std::string> find_doubts(RunRecord& run, std::string_view config);

// The doubts about all of `runs`, one line each; "" where there are none.
std::string doubts_text(const std::vector<RunRecord>& runs);
// Throws data_error with the first of them: for what decides something by the figures.
void require_no_doubts(const std::vector<RunRecord>& runs);

}  // namespace mulligan::report
