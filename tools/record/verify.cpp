#include "tools/record/verify.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/core/error.h"
#include "tools/record/claim_check.h"

namespace mulligan::record {

std::vector<doctor::Finding> verify_submission(const std::filesystem::path& path) {
  const SubmissionFolder folder = open_submission(path);
  return {claims_check(folder),  seeds_check(folder),   means_check(folder),      logs_check(folder),
          scores_check(folder),  bytes_check(folder),   seconds_check(folder),    rules_check(folder),
          code_check(folder),    sums_check(folder),    statistics_check(folder), readme_check(folder),
          overlap_check(folder), settings_check(folder)};
}

void require_sound(const std::filesystem::path& folder, const std::vector<doctor::Finding>& findings) {
  std::vector<const doctor::Finding*> failed;
  for (const doctor::Finding& finding : findings) {
    if (finding.verdict == doctor::CheckOutcome::fail) failed.push_back(&finding);
  }
  if (failed.empty()) return;
  // A folder that contradicts itself says nothing about rules either.
  const auto first =
      std::ranges::find_if(failed, [](const auto* finding) { return !is_broken_rule(*finding); });
  const doctor::Finding& told = first == failed.end() ? *failed.front() : **first;
  const std::string more = failed.size() == 1 ? "" : fmt::format(" (and {} more)", failed.size() - 1);
  throw Error(is_broken_rule(told) ? ExitCode::run_failed : ExitCode::bad_data,
              fmt::format("'{}' is refused by {}: {}{}; {}.", folder.string(), told.id, told.message, more,
                          told.hint));
}

bool is_broken_rule(const doctor::Finding& finding) {
  return finding.id == rules_id || finding.id == overlap_id;
}

}  // namespace mulligan::record
