#include "framework/run/process_check.h"

#include <fmt/ranges.h>

#include "framework/core/error.h"
#include "framework/core/kernel_clock.h"
#include "framework/core/preloaded.h"
#include "framework/core/printable.h"
#include "framework/report/run_log.h"

namespace mulligan {
namespace {

std::string preloaded_text() {
  return printable(fmt::format(
      "code that is not the program's stands before the libraries that it asks: {} (unset LD_PRELOAD and "
      "LD_AUDIT, and start again)",
      fmt::join(preloaded_code(), "; ")));
}

}  // namespace

void require_true_clocks(const LedgerConfig& limits, RunLog& log) {
  std::vector<std::string> found;
  if (const auto clocks = clock_disagreements(clocks_at_start(), read_clocks()); !clocks.empty())
    found.push_back(fmt::format("the clocks disagree: {}", fmt::join(clocks, "; ")));
  const bool strict = limits.rules == LedgerRules::strict;
  if (strict && !preloaded_code().empty()) found.push_back(preloaded_text());
  if (found.empty()) return;
  const std::string text = fmt::format("{}", fmt::join(found, "; "));
  if (strict) throw run_error("{}; under ledger.rules = \"strict\" the result is refused as a record.", text);
  log.print("warning: {}", text);
}

void say_preloaded(const LedgerConfig& limits, RunLog& log) {
  if (limits.rules != LedgerRules::strict) return;
  if (!preloaded_code().empty()) {
    log.print("warning: {}; under ledger.rules = \"strict\" the result will be refused as a record",
              preloaded_text());
  }
  if (const std::string path = library_path(); !path.empty())
    log.print("note: libraries are looked for in LD_LIBRARY_PATH = '{}' first", printable(path));
}

}  // namespace mulligan
