#include "tools/try/rules.h"

#include <fmt/format.h>

#include <cmath>

#include "framework/core/statistic.h"
#include "tools/stats/study.h"

namespace mulligan::tries {

std::string verdict_of(const stats::TTest& better, std::size_t look) {
  const double alpha = look_alpha.at(look);
  if (better.greater <= alpha) return "keep";
  const bool worse = stats::t_cdf(better.t, better.degrees) <= alpha;
  return worse || look + 1 == look_alpha.size() ? "discard" : "undecided";
}

std::optional<double> loss_at(const MetricsHistory& metrics, double fraction) {
  for (std::size_t i = 0; i < metrics.steps.size(); ++i) {
    const StepRecord& after = metrics.steps[i];
    if (after.budget_fraction < fraction) continue;
    const StepRecord& before = metrics.steps[i == 0 ? 0 : i - 1];
    const double span = after.budget_fraction - before.budget_fraction;
    const double share = span > 0 ? (fraction - before.budget_fraction) / span : 1;
    return std::lerp(before.window_loss_nats, after.window_loss_nats, share);
  }
  return std::nullopt;
}

std::optional<double> abort_limit(std::span<const double> base_losses) {
  if (base_losses.size() < stats::fewest_reportable) return std::nullopt;
  const Statistic base = statistic_of(base_losses);
  const auto n = static_cast<double>(base.n);
  const double half = stats::t_quantile(1 - abort_alpha, n - 1) * *base.deviation * std::sqrt(1 + 1 / n);
  return base.mean + half + abort_margin_nats;
}

std::string why_end(const MetricsHistory& metrics, const AbortLimits& limits) {
  for (std::size_t i = 0; i < limits.size(); ++i) {
    const auto loss = limits[i] ? loss_at(metrics, abort_fractions[i]) : std::nullopt;
    if (loss && *loss > *limits[i])
      return fmt::format(
          "ended at {:.0f} % of the budget: training loss {:.4f} nats, above the base's {:.4f}",
          100 * abort_fractions[i], *loss, *limits[i]);
  }
  return {};
}

}  // namespace mulligan::tries
