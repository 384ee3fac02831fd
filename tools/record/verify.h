// What `mulligan record --verify` does: whether a submission's folder agrees with itself and with the rules.
#pragma once

#include <filesystem>
#include <vector>

#include "tools/doctor/finding.h"

namespace mulligan::record {

// The checks R01 to R12 of docs/submissions.md, in that order. Throws data_error for a folder without a readable
// submission.json.
std::vector<doctor::Finding> verify_submission(const std::filesystem::path& folder);

// Throws data_error if a finding failed; run_error if all that failed is a broken rule.
void require_sound(const std::filesystem::path& folder, const std::vector<doctor::Finding>& findings);

}  // namespace mulligan::record
