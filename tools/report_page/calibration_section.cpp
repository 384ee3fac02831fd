// The section of a run's report about calibration: figures, subjects, reliability diagrams.
#include <fmt/format.h>

#include <cmath>

#include "framework/core/printable.h"
#include "tools/report_page/html.h"
#include "tools/report_page/line_chart.h"
#include "tools/report_page/run_sections.h"

namespace mulligan::report {
namespace {

Cell share(const std::optional<double>& value) {
  return {value ? fixed(*value, 4) : "-", true};
}

std::vector<Cell> figures_row(const std::string& name, const CalibrationResult::Figures& f) {
  return {{name},
          {grouped(std::llround(f.items)), true},
          share(f.accuracy),
          share(f.confidence),
          share(f.ece),
          share(f.adaptive_ece),
          share(f.mce),
          share(f.brier),
          share(f.loss_nats),
          share(f.swagger),
          share(f.swagger_gap)};
}

// On the diagonal confidence is worth its word; below it the model boasts.
LineChart reliability_chart(const CalibrationResult::Set& set, std::size_t number) {
  LineChart chart{fmt::format("calibration-{}-curve", number),
                  fmt::format("Reliability, {}", set.all.name),
                  "How often answers of each bin of confidence were right. Below the diagonal the model is "
                  "surer than it may be.",
                  "confidence",
                  "share right",
                  false,
                  {},
                  {}};
  chart.curves.push_back({"confidence equals accuracy", {{0, 0}, {1, 1}}, 6, Stroke::dashed});
  Curve measured{"measured", {}, 0, Stroke::dots};
  for (const CalibrationResult::Bin& bin : set.bins) {
    if (bin.count > 0) measured.points.push_back({bin.confidence, bin.accuracy});
  }
  chart.curves.push_back(measured);
  return chart;
}

}  // namespace

std::string calibration_section(const RunRecord& run) {
  if (!run.calibration) return {};
  std::vector<std::vector<Cell>> rows;
  std::string figures;
  for (const CalibrationResult::Set& set : run.calibration->sets) {
    rows.push_back(figures_row(set.all.name, set.all));
    for (const CalibrationResult::Figures& subject : set.subjects)
      rows.push_back(figures_row(fmt::format("{}: {}", set.all.name, subject.name), subject));
    figures += draw(reliability_chart(set, rows.size()));
  }
  return section("calibration", "Calibration",
                 note("Answered by: " + run.calibration->weights) +
                     table({"set", "items", "accuracy", "confidence", "ECE", "adaptive ECE", "MCE", "Brier",
                            "nats", "swagger", "gap"},
                           rows) +
                     charts(figures));
}

}  // namespace mulligan::report
