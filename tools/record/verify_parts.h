// The checks of verify_submission(), one function each.
#pragma once

#include "tools/doctor/finding.h"
#include "tools/record/submission_folder.h"

namespace mulligan::record {

inline constexpr const char* rules_id = "R08";
inline constexpr const char* overlap_id = "R13";
inline constexpr const char *code_id = "R09", *code_title = "code as it was counted",
                            *code_threshold = "the shipped bytes are those counted";

// verify_claims.cpp: submission.json by itself.
doctor::Finding claims_check(const SubmissionFolder& folder);      // R01
doctor::Finding seeds_check(const SubmissionFolder& folder);       // R02
doctor::Finding means_check(const SubmissionFolder& folder);       // R03
doctor::Finding rules_check(const SubmissionFolder& folder);       // R08
doctor::Finding statistics_check(const SubmissionFolder& folder);  // R11
doctor::Finding overlap_check(const SubmissionFolder& folder);     // R13

// verify_logs.cpp: against the logs.
doctor::Finding logs_check(const SubmissionFolder& folder);     // R04
doctor::Finding scores_check(const SubmissionFolder& folder);   // R05
doctor::Finding bytes_check(const SubmissionFolder& folder);    // R06
doctor::Finding seconds_check(const SubmissionFolder& folder);  // R07

// verify_source.cpp: what the runs were made from.
doctor::Finding own_code_check(const SubmissionFolder& folder);  // R09 of folders of this program
doctor::Finding settings_check(const SubmissionFolder& folder);  // R14

// verify_files.cpp: the files that lie there.
doctor::Finding code_check(const SubmissionFolder& folder);    // R09
doctor::Finding sums_check(const SubmissionFolder& folder);    // R10
doctor::Finding readme_check(const SubmissionFolder& folder);  // R12

}  // namespace mulligan::record
