// Makes a submission's folder from the runs of a record, and checks one.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "framework/artifact/artifact_run.h"
#include "framework/config/eval_config.h"
#include "tools/doctor/finding.h"
#include "tools/record/seed_run.h"
#include "tools/record/submission.h"

namespace mulligan::record {

// What the runs themselves do not state.
struct SubmissionOptions {
  Submission about;                      // author to command, and budgets
  std::vector<SeedRun> runs;             // all stages done
  LedgerConfig limits;                   // strict
  std::optional<Comparison> comparison;  // name, reference_bpb and rule
  std::filesystem::path source;          // tree whose code was counted
  std::string source_sha256;             // that of the tree that the program was built from
  ScoringCode scoring;                   // what scores the models
  bool ship_artifacts = false;
  std::filesystem::path out;  // the folder, which must not exist
};

// Throws config_error if limits are not set, or exceed those of the track.
Budgets budgets_of(const LedgerConfig& limits, const std::string& track);

// Bits per byte of the seeds, two or more, against the reference, by the challenge's rule.
void compare(Submission& submission, Comparison comparison);

// Collects the results, checks every rule, packs the source, and writes the folder under a temporary name that becomes
// `out` when it is complete. Throws run_error for a broken rule, data_error for runs that contradict one another.
Submission make_submission(const SubmissionOptions& options);

// The checks R01 to R12 of docs/submissions.md, in that order. Throws data_error for a folder without a readable
// submission.json.
std::vector<doctor::Finding> verify_submission(const std::filesystem::path& folder);

// Throws data_error if a finding failed; run_error if all that failed is a broken rule.
void require_sound(const std::filesystem::path& folder, const std::vector<doctor::Finding>& findings);

}  // namespace mulligan::record
