// A submission's folder on the disk, and ClaimCheck: one check of it in progress.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tools/doctor/finding.h"
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

// "seed 42"; "the run" for a result without a seed.
std::string seed_text(const SeedResult& result);

// Collects what a check found wrong, what it could not check, and how much it compared.
class ClaimCheck {
 public:
  ClaimCheck(const char* id, const char* title, std::string threshold, const SubmissionFolder& folder)
      : folder(folder),
        own_(folder.submission.own),
        finding_(doctor::begin_finding(id, title, std::move(threshold))) {}
  // Calls visit(result, log) for each result. A log that is not there states nothing, and its `file` is empty. `whose` and
  // `in_log` name the result and its log meanwhile.
  template <typename Visit>
  void each_result(Visit&& visit) {
    for (std::size_t i = 0; i < folder.of.size(); ++i) {
      whose = seed_text(folder.submission.results[i]);
      in_log = "the log of " + whose;
      const LogClaims none, &log = folder.of[i] != nullptr ? *folder.of[i] : none;
      visit(folder.submission.results[i], log);
    }
  }
  void wrong(std::string what) { wrong_.push_back(std::move(what)); }
  // A matter of form, such as a missing author: wrong in a folder of this program, where every claim must be present; a warning
  // in another one, because it says nothing about the numbers.
  void form(std::string what) { own_ ? wrong(std::move(what)) : form_.push_back(std::move(what)); }
  void unknown(std::string why) { unknown_.push_back(std::move(why)); }
  void missing(std::string what) { own_ ? wrong(std::move(what)) : unknown(std::move(what)); }
  void looked() { ++looked_; }
  // Compares a claim with what was found; both must be present.
  template <typename T>
  void compare(const std::string& what, const std::optional<T>& claimed, const std::optional<T>& found,
               double tolerance, const std::string& where) {
    if (!claimed && own_) wrong(what + " is not claimed");
    if (!claimed) return;
    if (!found) return missing(fmt::format("{} does not say {}", where, what));
    looked();
    if (!(std::abs(static_cast<double>(*claimed) - static_cast<double>(*found)) <= tolerance))
      wrong(fmt::format("{} is claimed to be {}, but {} says {}", what, *claimed, where, *found));
  }
  // The same of a figure of each_result() and its log.
  template <typename T>
  void compare_log(const char* what, const std::optional<T>& claimed, const std::optional<T>& found,
                   double tolerance) {
    compare(fmt::format("{} of {}", what, whose), claimed, found, tolerance, in_log);
  }
  // `measured` empty: the number of compared claims. A check that compared nothing is a skip.
  doctor::Finding finish(const std::string& hint, const std::string& measured = "");

  const SubmissionFolder& folder;
  std::string whose, in_log;

 private:
  bool own_;
  doctor::Finding finding_;
  std::vector<std::string> wrong_, form_, unknown_;
  int looked_ = 0;
};

inline constexpr const char* rules_id = "R08";

// The checks of verify_submission().
using Check = doctor::Finding(const SubmissionFolder&);
Check claims_check, seeds_check, means_check, rules_check;   // verify_claims.cpp: submission.json by itself
Check logs_check, scores_check, bytes_check, seconds_check;  // verify_logs.cpp: against the logs
Check code_check, sums_check, readme_check, digests_check;   // verify_files.cpp

}  // namespace mulligan::record
