#include "framework/run/process_check.h"

#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "framework/core/error.h"
#include "framework/core/preloaded.h"
#include "framework/core/printable.h"
#include "framework/ranks/handshake.h"
#include "framework/report/run_log.h"

namespace mulligan {
namespace {

std::string preloaded_text() {
  if (preloaded_code().empty()) return {};
  return printable(fmt::format(
      "code that is not the program's stands before the libraries that it asks: {} (unset LD_PRELOAD and "
      "LD_AUDIT, and start again)",
      fmt::join(preloaded_code(), "; ")));
}

// What each rank states of itself, on all ranks; empty where none states anything.
std::string of_all_ranks(HostGroup& group, const std::string& own) {
  if (group.world_size() == 1) return own;
  const std::string named = own.empty() ? own : fmt::format("{}: {}", own_name(group.rank()).text(), own);
  return group.consult_texts(named, [](std::vector<std::string> all) {
    std::erase(all, "");
    return fmt::format("{}", fmt::join(all, "; "));
  });
}

}  // namespace

void require_true_processes(const LedgerConfig& limits, HostGroup& group, RunLog& log) {
  const bool strict = limits.rules == LedgerRules::strict;
  std::vector<std::string> found;
  if (strict && !preloaded_code().empty()) found.push_back(preloaded_text());
  const std::string own = fmt::format("{}", fmt::join(found, "; ")), all = of_all_ranks(group, own);
  if (all.empty()) return;
  if (!strict) return log.print("warning: {}", all);
  if (own.empty()) group.barrier();  // until the verdict about the ranks that are concerned
  throw run_error("{}; under ledger.rules = \"strict\" the result is refused as a record.",
                  own.empty() ? all : own);
}

void say_preloaded(const LedgerConfig& limits, HostGroup& group, RunLog& log) {
  if (limits.rules != LedgerRules::strict) return;
  if (const std::string found = of_all_ranks(group, preloaded_text()); !found.empty())
    log.print("warning: {}; under ledger.rules = \"strict\" the result will be refused as a record", found);
  const std::string path = library_path();
  const std::string paths = of_all_ranks(group, path.empty() ? path : fmt::format("'{}'", printable(path)));
  if (!paths.empty()) log.print("note: libraries are looked for in LD_LIBRARY_PATH = {} first", paths);
}

}  // namespace mulligan
