#include "framework/run/clock_check.h"

#include <fmt/ranges.h>

#include "framework/core/error.h"
#include "framework/core/kernel_clock.h"
#include "framework/report/run_log.h"

namespace mulligan {

void require_true_clocks(const LedgerConfig& limits, RunLog& log) {
  const std::vector<std::string> found = clock_disagreements(clocks_at_start(), read_clocks());
  if (found.empty()) return;
  const std::string text = fmt::format("the clocks disagree: {}", fmt::join(found, "; "));
  if (limits.rules == LedgerRules::strict) {
    throw run_error("{}; under ledger.rules = \"strict\" the result is refused as a record.", text);
  }
  log.print("warning: {}", text);
}

}  // namespace mulligan
