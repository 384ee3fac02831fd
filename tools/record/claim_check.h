// ClaimCheck: one check of a submission under way.
#pragma once

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "tools/doctor/finding.h"
#include "tools/record/submission.h"
#include "tools/record/submission_folder.h"

namespace mulligan::record {

// One check under way: what it found wrong, what it could not see, how much it looked at.
class ClaimCheck {
 public:
  // `own`: of a folder of this program, which says everything; what is missing there is wrong.
  ClaimCheck(const char* id, const char* title, std::string threshold, bool own) : own_(own) {
    finding_.id = id;
    finding_.title = title;
    finding_.threshold = std::move(threshold);
  }
  void wrong(std::string what) { wrong_.push_back(std::move(what)); }
  // A matter of form, such as a missing author: wrong in a folder of this program, a warning in one of others,
  // which says nothing about its numbers.
  void form(std::string what) { own_ ? wrong(std::move(what)) : form_.push_back(std::move(what)); }
  void unknown(std::string why) { unknown_.push_back(std::move(why)); }
  // What should be there and is not.
  void missing(std::string what) { own_ ? wrong(std::move(what)) : unknown(std::move(what)); }
  void looked() { ++looked_; }
  // A claim against what it was found to be; both must be there to be compared.
  template <typename T>
  void compare(const std::string& what, const std::optional<T>& claimed, const std::optional<T>& found,
               double tolerance, const std::string& where) {
    if (!claimed && own_) wrong(what + " is not claimed");
    if (!claimed) return;
    if (!found) return missing(fmt::format("{} does not say {}", where, what));
    looked();
    const double a = static_cast<double>(*claimed), b = static_cast<double>(*found);
    if (!(std::abs(a - b) <= tolerance))
      wrong(fmt::format("{} is claimed to be {}, but {} says {}", what, *claimed, where, *found));
  }
  // `measured` empty: how many claims were compared. Nothing looked at: a skip.
  doctor::Finding finish(const std::string& measured, const std::string& hint);

 private:
  bool own_;
  doctor::Finding finding_;
  std::vector<std::string> wrong_, form_, unknown_;
  int looked_ = 0;
};

// "seed 42"; "the run" where it has no seed.
std::string seed_text(const SeedResult& result);

// How far a claim may be from what it stands for: one unit of its last decimal, of which four count at least and
// seven at most, since others round or cut off. Figures of this program do neither.
double tolerance_of(double claimed, bool own);
// The same where what it stands for is published too, with as few digits.
inline double tolerance_of(double claimed, double found, bool own) {
  return std::max(tolerance_of(claimed, own), own ? 0.0 : tolerance_of(found, own));
}

// The checks of verify_submission(), one function each.

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
doctor::Finding code_check(const SubmissionFolder& folder);  // R09
doctor::Finding sums_check(const SubmissionFolder& folder);  // R10

// verify_readme.cpp: what people read.
doctor::Finding readme_check(const SubmissionFolder& folder);  // R12

}  // namespace mulligan::record
