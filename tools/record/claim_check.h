// ClaimCheck: one check of a submission in progress.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "tools/doctor/finding.h"
#include "tools/record/submission_folder.h"

namespace mulligan::record {

// Collects what a check found wrong, what it could not check, and how much it compared.
class ClaimCheck {
 public:
  // In a folder of this program every claim must be present; `own` makes a missing one wrong.
  ClaimCheck(const char* id, const char* title, std::string threshold, bool own) : own_(own) {
    finding_.id = id;
    finding_.title = title;
    finding_.threshold = std::move(threshold);
  }
  void wrong(std::string what) { wrong_.push_back(std::move(what)); }
  // A matter of form, such as a missing author: wrong in a folder of this program, a warning in another one, because
  // it says nothing about the numbers.
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
  // `measured` empty: the number of compared claims. A check that compared nothing is a skip.
  doctor::Finding finish(const std::string& measured, const std::string& hint);

 private:
  bool own_;
  doctor::Finding finding_;
  std::vector<std::string> wrong_, form_, unknown_;
  int looked_ = 0;
};

// "seed 42"; "the run" for a result without a seed.
std::string seed_text(const SeedResult& result);

// The permitted distance between a claim and what it states: one unit of its last decimal. Between four and seven
// decimals count, since some programs round and some cut off.
double tolerance_of(double claimed);
// The same if what it states is published too, perhaps with fewer digits.
double tolerance_of(double claimed, double found);

// The checks of verify_submission().

inline constexpr const char* rules_id = "R08";

// verify_claims.cpp: submission.json by itself.
doctor::Finding claims_check(const SubmissionFolder& folder);  // R01
doctor::Finding seeds_check(const SubmissionFolder& folder);   // R02
doctor::Finding means_check(const SubmissionFolder& folder);   // R03
doctor::Finding rules_check(const SubmissionFolder& folder);   // R08

// verify_logs.cpp: against the logs.
doctor::Finding logs_check(const SubmissionFolder& folder);     // R04
doctor::Finding scores_check(const SubmissionFolder& folder);   // R05
doctor::Finding bytes_check(const SubmissionFolder& folder);    // R06
doctor::Finding seconds_check(const SubmissionFolder& folder);  // R07

// verify_files.cpp: the files of the folder.
doctor::Finding code_check(const SubmissionFolder& folder);     // R09
doctor::Finding sums_check(const SubmissionFolder& folder);     // R10
doctor::Finding readme_check(const SubmissionFolder& folder);   // R11
doctor::Finding digests_check(const SubmissionFolder& folder);  // R12

}  // namespace mulligan::record
