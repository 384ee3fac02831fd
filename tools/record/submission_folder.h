// A submission's folder on the disk: its claims, and the log of each result.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tools/record/seed_log.h"
#include "tools/record/submission.h"

namespace mulligan::record {

struct FoundLog {
  std::string name;
  LogClaims claims;
};

struct SubmissionFolder {
  std::filesystem::path path;
  Submission submission;
  std::vector<FoundLog> logs;                  // every log of the folder
  std::vector<std::string> links;              // symbolic links, which are never read
  std::vector<std::optional<std::size_t>> of;  // by result: its log in `logs`; absent: there is none

  const LogClaims* log_of(std::size_t result) const {
    return of[result] ? &logs[*of[result]].claims : nullptr;
  }
};

// Reads submission.json and every *.log, *.out and *.txt. Symbolic links are not followed. A result's log is the one
// that it names, else one that states the result's seed, in its text or as "seed42" in its name. A single result
// without a seed takes the only log. Throws data_error for a folder that cannot be read.
SubmissionFolder open_submission(const std::filesystem::path& folder);

// "train_seed42.log" -> 42; absent if the name has no "seed" that digits follow.
std::optional<std::int64_t> seed_of_name(const std::string& name);

}  // namespace mulligan::record
