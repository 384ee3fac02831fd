#include "tools/doctor/rate_checks.h"

#include <fmt/format.h>

#include <algorithm>

namespace mulligan::doctor {

Finding check_rates(const std::string& optimizer, const std::vector<RatePoint>& points) {
  Finding f;
  f.id = "D29";
  f.title = fmt::format("learning rate of [optimizer.{}]", optimizer);
  f.threshold = "fails where it rises by more than 10 % at once, without a declared restart or factor";
  double highest = 0, lowest = 0, largest = 0;
  std::size_t restarts = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const RatePoint& now = points[i];
    highest = i == 0 ? now.lr : std::max(highest, now.lr);
    lowest = i == 0 ? now.lr : std::min(lowest, now.lr);
    if (i == 0) continue;
    const RatePoint& before = points[i - 1];
    if (now.cycle != before.cycle || (now.phase != before.phase && now.restarts)) {
      ++restarts;
      continue;
    }
    constexpr double warm_up = 0.05;
    if (before.progress < warm_up || before.declared <= 0 || now.declared <= 0) continue;
    // What the phases' factors explain is no jump.
    const double from = before.lr / before.declared, to = now.lr / now.declared;
    const double rise = to - from;
    if (rise <= 0.1 * from || rise <= 0.01 * highest / now.declared) continue;
    largest = std::max(largest, rise / std::max(from, 1e-30));
    if (f.verdict == Verdict::fail) continue;
    f.verdict = Verdict::fail;
    f.message = fmt::format(
        "the learning rate of [optimizer.{}] jumps from {:.4g} to {:.4g} at {:.1f} % of the run: this is a "
        "warm restart",
        optimizer, before.lr, now.lr, 100 * now.progress);
    f.hint =
        "declare it (a schedule with cycles, a phase's lr_multiplier), or its effect is taken for something "
        "else's";
  }
  f.measured = fmt::format("{:.4g} to {:.4g}, {} declared restarts", lowest, highest, restarts);
  return f;
}

}  // namespace mulligan::doctor
