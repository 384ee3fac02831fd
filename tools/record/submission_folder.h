// A submission's folder as it lies on the disk: its claims, and the log of each result.
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
  std::vector<FoundLog> logs;                  // every log that lies there
  std::vector<std::string> links;              // entries that are not files of the folder's own; never read
  std::vector<std::optional<std::size_t>> of;  // by result: its log in `logs`; absent: there is none

  const LogClaims* log_of(std::size_t result) const {
    return of[result] ? &logs[*of[result]].claims : nullptr;
  }
};

// Reads submission.json and every *.log and *.txt, symbolic links left out: they lead out of the folder. A result's log is the one that it names, else one that
// says the result's seed, in its text or as "seed42" in its name; a single result without a seed takes the
// only log. Throws data_error where something cannot be read.
SubmissionFolder open_submission(const std::filesystem::path& folder);

// "train_seed42.log" -> 42; absent where the name has no "seed" with digits behind it.
std::optional<std::int64_t> seed_of_name(const std::string& name);

}  // namespace mulligan::record
