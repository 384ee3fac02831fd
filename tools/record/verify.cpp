#include "tools/record/make_submission.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "framework/core/error.h"
#include "tools/record/claim_check.h"

namespace mulligan::record {

using doctor::CheckOutcome;
using doctor::Finding;

std::string seed_text(const SeedResult& result) {
  return result.seed ? fmt::format("seed {}", *result.seed) : std::string("the run");
}

Finding ClaimCheck::finish(const std::string& hint, const std::string& measured) {
  const auto joined = [](const std::vector<std::string>& texts) {
    return fmt::format("{}", fmt::join(texts, "; "));
  };
  finding_.measured = measured.empty() ? fmt::format("{} compared", looked_) : measured;
  if (!wrong_.empty()) return judged(finding_, CheckOutcome::fail, joined(wrong_), hint);
  if (!form_.empty())
    return judged(finding_, CheckOutcome::warn, joined(form_), "a matter of form: it contradicts no number");
  if (looked_ == 0)
    return judged(finding_, CheckOutcome::skip,
                  unknown_.empty() ? "the folder claims nothing of the kind" : joined(unknown_),
                  "nothing: its files do not allow it");
  if (!unknown_.empty()) finding_.measured += "; not checked: " + joined(unknown_);
  return finding_;
}

std::vector<Finding> verify_submission(const std::filesystem::path& path) {
  const SubmissionFolder folder = open_submission(path);
  return {claims_check(folder), seeds_check(folder), means_check(folder),   logs_check(folder),
          scores_check(folder), bytes_check(folder), seconds_check(folder), rules_check(folder),
          code_check(folder),   sums_check(folder),  readme_check(folder),  digests_check(folder)};
}

void require_sound(const std::filesystem::path& folder, const std::vector<Finding>& findings) {
  std::vector<Finding> failed;
  std::ranges::copy_if(findings, std::back_inserter(failed),
                       [](const Finding& finding) { return finding.verdict == CheckOutcome::fail; });
  if (failed.empty()) return;
  // A folder that contradicts itself says nothing about rules either.
  auto told = std::ranges::find_if(failed, [](const Finding& finding) { return finding.id != rules_id; });
  const ExitCode code = told == failed.end() ? ExitCode::run_failed : ExitCode::bad_data;
  if (told == failed.end()) told = failed.begin();
  const std::string more = failed.size() == 1 ? "" : fmt::format(" (and {} more)", failed.size() - 1);
  throw Error(code, fmt::format("'{}' is refused by {}: {}{}; {}.", folder.string(), told->id, told->message,
                                more, told->hint));
}

}  // namespace mulligan::record
