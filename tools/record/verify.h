// Checks a submission's folder: of this program, or of others as far as their files allow.
#pragma once

#include <filesystem>
#include <vector>

#include "tools/doctor/finding.h"

namespace mulligan::record {

// The checks R01 to R14 of docs/submissions.md, in that order. What the files do not allow to check is a skip
// that says why. Throws data_error where the folder or its submission.json cannot be read at all.
std::vector<doctor::Finding> verify_submission(const std::filesystem::path& folder);

// Throws where a check has failed, with the first one's sentence: run_error for a broken rule, data_error for
// a folder that contradicts itself.
void require_sound(const std::filesystem::path& folder, const std::vector<doctor::Finding>& findings);

// Whether a finding is about a rule of the challenge that was broken, rather than about a folder that
// contradicts itself.
bool is_broken_rule(const doctor::Finding& finding);

}  // namespace mulligan::record
