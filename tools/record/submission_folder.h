// A submission's folder on the disk: its claims, and the log of each result.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tools/record/seed_log.h"
#include "tools/record/submission.h"

namespace mulligan::record {

struct SubmissionFolder {
  std::filesystem::path path;
  Submission submission;
  std::vector<LogClaims> logs;       // every log of the folder
  std::vector<std::string> links;    // symbolic links, which are never read
  std::vector<const LogClaims*> of;  // by result: its log in `logs`; null: there is none

  // Whether a file of this name, no link, is in it.
  bool has(const std::string& name) const;
};

// The permitted distance between a claim and what it states: one unit of its last decimal, or of what it states if that is
// published too. Between four and seven decimals count, since some programs round and some cut off.
double tolerance_of(std::initializer_list<double> figures);

// The score of `scores` that a claim is; null: none.
const LogScore* find_score(const std::vector<LogScore>& scores, const std::optional<double>& claimed);

// Reads submission.json and every *.log, *.out and *.txt. Symbolic links are not followed. A result's log is the one
// that it names, else one that states the result's seed, in its text or as "seed42" in its name. A single result
// without a seed takes the only log. Throws data_error for a folder that cannot be read.
SubmissionFolder open_submission(const std::filesystem::path& folder);

}  // namespace mulligan::record
