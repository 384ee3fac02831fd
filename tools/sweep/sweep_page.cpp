// sweep.html: costs with each pair of what is weighed as a picture.
#include <fmt/format.h>

#include <functional>

#include "framework/core/statistic.h"
#include "tools/report_page/chart.h"
#include "tools/report_page/html.h"
#include "tools/sweep/sweep.h"
#include "tools/sweep/sweep_cost.h"

namespace mulligan {
namespace {

using Values = std::vector<double> RowCost::*;

// A dot for each seed of each row that has both figures.
std::string scatter(const std::vector<RowCost>& rows, const std::string& id, const std::string& title,
                    Values across, double unit, const std::string& across_label, const std::string& metric) {
  report::LineChart chart{
      id,           title,  "One dot per seed; below and left is better. Rows of the front are marked *.",
      across_label, metric, false,
      {},           {}};
  bool any = false;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::vector<double>& x = rows[i].*across;
    report::Curve dots{rows[i].name + (rows[i].pareto ? " *" : ""), {}, i, report::Stroke::dots};
    for (std::size_t seed = 0; seed < x.size(); ++seed)
      dots.points.push_back({x[seed] / unit, rows[i].metric[seed]});
    any = any || !dots.points.empty();
    chart.curves.push_back(std::move(dots));
  }
  return any ? report::draw(chart) : "";
}

std::string bars(const std::vector<RowCost>& rows, const std::string& id, const std::string& title,
                 Values values, const std::function<std::string(double)>& text) {
  report::BarChart chart{id, title, "Means over the seeds.", {}};
  for (const RowCost& row : rows) {
    if ((row.*values).empty()) continue;
    const double mean = statistic_of(row.*values).mean;
    chart.bars.push_back({row.name, mean, text(mean), {}});
  }
  return chart.bars.empty() ? "" : report::draw(chart);
}

}  // namespace

std::string sweep_page(const Sweep& sweep, const SweepResult& result) {
  if (!sweep.costs) return {};
  const std::vector<RowCost> rows = row_costs(sweep, result);
  const auto rate = [](double value) { return fmt::format("{:.0f} tokens/s", value); };
  std::string pictures = bars(rows, "speed-bars", "Speed", &RowCost::tokens_per_second, rate);
  if (sweep.target_loss_nats > 0) {
    pictures += scatter(rows, "seconds-scatter", "Seconds to the target against the score",
                        &RowCost::seconds_to_target, 1, "seconds of training", sweep.metric);
  }
  pictures += scatter(rows, "memory-scatter", "Memory against the score", &RowCost::device_bytes, 1e6,
                      "MB on the first rank's device", sweep.metric);
  pictures += scatter(rows, "energy-scatter", "Energy against the score", &RowCost::joules, 1, "joules",
                      sweep.metric);
  pictures += bars(rows, "memory-bars", "Memory of the device", &RowCost::device_bytes, report::bytes_text);
  return report::page(
      "A sweep", "<code>" + report::escape(sweep.directory) + "</code>",
      report::section("costs", "Costs", "<pre>" + report::escape(cost_table(sweep, result)) + "</pre>\n") +
          report::section("pictures", "Pictures", report::charts(pictures)));
}

}  // namespace mulligan
