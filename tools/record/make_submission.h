// Makes a submission's folder from the runs of a record.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "framework/artifact/artifact_run.h"
#include "framework/config/eval_config.h"
#include "tools/record/seed_run.h"
#include "tools/record/submission.h"

namespace mulligan::record {

// What the runs themselves do not state.
struct SubmissionOptions {
  Submission about;                      // author to command, and budgets
  std::vector<SeedRun> runs;             // all stages done
  LedgerConfig limits;                   // strict
  std::optional<Comparison> comparison;  // name, reference_bpb, margin_nats, alpha, paired
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

}  // namespace mulligan::record
