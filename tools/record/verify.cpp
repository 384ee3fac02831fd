#include "tools/record/verify.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/core/error.h"
#include "tools/record/claim_check.h"

namespace mulligan::record {

std::vector<doctor::Finding> verify_submission(const std::filesystem::path& path) {
  const SubmissionFolder folder = open_submission(path);
  return {claims_check(folder), seeds_check(folder), means_check(folder),   logs_check(folder),
          scores_check(folder), bytes_check(folder), seconds_check(folder), rules_check(folder),
          code_check(folder),   sums_check(folder),  readme_check(folder),  digests_check(folder)};
}

void require_sound(const std::filesystem::path& folder, const std::vector<doctor::Finding>& findings) {
  std::vector<const doctor::Finding*> failed;
  for (const doctor::Finding& finding : findings) {
    if (finding.verdict == doctor::CheckOutcome::fail) failed.push_back(&finding);
  }
  if (failed.empty()) return;
  // A folder that contradicts itself says nothing about rules either.
  const auto contradiction =
      std::ranges::find_if(failed, [](const auto* finding) { return finding->id != rules_id; });
  const doctor::Finding& told = contradiction == failed.end() ? *failed.front() : **contradiction;
  const std::string more = failed.size() == 1 ? "" : fmt::format(" (and {} more)", failed.size() - 1);
  throw Error(contradiction == failed.end() ? ExitCode::run_failed : ExitCode::bad_data,
              fmt::format("'{}' is refused by {}: {}{}; {}.", folder.string(), told.id, told.message, more,
                          told.hint));
}

}  // namespace mulligan::record
