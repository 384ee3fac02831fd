// A submission's folder from the runs of a record.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "framework/config/eval_config.h"
#include "framework/data/tokenizer.h"
#include "tools/record/seed_run.h"
#include "tools/record/submission.h"

namespace mulligan::record {

// What the runs themselves don't say.
struct SubmissionOptions {
  Submission about;                      // author to software, command and sums; budgets; overlap
  std::vector<SeedRun> runs;             // all stages done
  LedgerConfig limits;                   // strict
  std::optional<Comparison> comparison;  // name, reference_bpb, margin_nats, alpha, paired
  std::filesystem::path source;          // tree whose code was counted
  std::vector<std::string> scoring;      // plugins, as scoring_plugins() names them
  bool ship_artifacts = false;
  std::filesystem::path out;  // the folder, which must not exist
};

// Budgets of the challenge's track of ten minutes and 16 MB.
inline constexpr const char* record_track = "10min_16mb";
// Whether a name is that track's or can be taken for it.
bool is_record_track(const std::string& name);
// Throws config_error: a name with other characters than letters, digits and _.-, or on the challenge's track a
// comparison that asks for less than the challenge does.
void require_track(const std::string& name, const std::optional<Comparison>& comparison);

// Before anything is run. Throws config_error where limits are not set, or exceed those of the track.
Budgets budgets_of(const LedgerConfig& limits, const std::string& track);

// Training and validation data kept apart? Every training token is compared. `tokenizer` may be null.
TextOverlap measure_overlap(const std::vector<std::filesystem::path>& training,
                            const std::vector<std::filesystem::path>& validation, const Tokenizer* tokenizer);
// Throws data_error where they are not.
void require_apart(const TextOverlap& overlap);

// Bits per byte of the seeds against the reference, by the challenge's rule. Throws config_error where the
// rule cannot be applied (one seed; pairs that are none).
void compare(Submission& submission, Comparison comparison);

// Collects the results, checks every rule, packs the source, and writes the folder: under a temporary name
// that becomes `out` when all of it is there. Throws run_error for a broken rule, data_error for runs that
// contradict one another.
Submission make_submission(const SubmissionOptions& options);

}  // namespace mulligan::record
