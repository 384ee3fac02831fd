#include "tools/record/claim_check.h"

#include <fmt/ranges.h>
#include <algorithm>

namespace mulligan::record {

using doctor::CheckOutcome;
using doctor::Finding;

Finding ClaimCheck::finish(const std::string& measured, const std::string& hint) {
  finding_.measured = measured.empty() ? fmt::format("{} compared", looked_) : measured;
  if (!wrong_.empty()) {
    finding_.verdict = CheckOutcome::fail;
    finding_.message = fmt::format("{}", fmt::join(wrong_, "; "));
    finding_.hint = hint;
  } else if (!form_.empty()) {
    finding_.verdict = CheckOutcome::warn;
    finding_.message = fmt::format("{}", fmt::join(form_, "; "));
    finding_.hint = "a matter of form: it contradicts no number";
  } else if (!unknown_.empty() || looked_ == 0) {
    finding_.verdict = looked_ > 0 ? CheckOutcome::pass : CheckOutcome::skip;
    if (looked_ == 0) {
      finding_.message = unknown_.empty() ? "the folder claims nothing of the kind"
                                          : fmt::format("{}", fmt::join(unknown_, "; "));
      finding_.hint = "nothing: its files do not allow it";
    } else {
      finding_.measured += fmt::format("; not checked: {}", fmt::join(unknown_, "; "));
    }
  }
  return finding_;
}

std::string seed_text(const SeedResult& result) {
  return result.seed ? fmt::format("seed {}", *result.seed) : std::string("the run");
}

double tolerance_of(double claimed) {
  const std::string text = fmt::format("{}", claimed);
  const std::size_t point = text.find('.');
  const std::size_t decimals = point == std::string::npos ? 0 : text.size() - point - 1;
  // Scripts print eight decimals at most, and a unit of the last one is rounding twice.
  return 1.0001 * std::pow(10.0, -static_cast<double>(std::clamp<std::size_t>(decimals, 4, 7)));
}

double tolerance_of(double claimed, double found) {
  return std::max(tolerance_of(claimed), tolerance_of(found));
}

}  // namespace mulligan::record
