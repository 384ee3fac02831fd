// The mean training losses of a sweep, next to the artefact of averages that lost their sums.
#include <fmt/format.h>

#include <algorithm>

#include "framework/core/statistic.h"
#include "tools/sweep/sweep.h"

namespace mulligan {
namespace {

std::string mean_text(const std::vector<double>& values) {
  const Statistic all = statistic_of(values);
  return fmt::format("{:.5f} +- {:.5f}", all.mean, all.deviation.value_or(0));
}

// By how much `values` are lower on average.
std::string loss_gain_text(const std::vector<double>& than, const std::vector<double>& values) {
  const double base = statistic_of(than).mean, gain = base - statistic_of(values).mean;
  return fmt::format("{:+.5f} ({:+.1f} %)", gain, 100 * gain / base);
}

}  // namespace

std::string training_loss_table(const Sweep& sweep, const SweepResult& result) {
  const auto any = [&](auto&& holds) {
    return std::ranges::any_of(result.cells,
                               [&](const auto& cells) { return std::ranges::any_of(cells, holds); });
  };
  if (!any([](const SweepCell& cell) { return cell.several_phases; })) return {};
  const auto of_row = [&](std::size_t row, double TrainingLoss::*figure) {
    std::vector<double> values;
    for (const SweepCell& cell : result.cells[row]) {
      if (cell.training) values.push_back(cell.training.value().*figure);
    }
    return values;
  };
  const auto& first = result.cells.front().front().training;
  const bool one_window = !any([&](const SweepCell& cell) {
    return !cell.training || cell.training->steps != first.value_or(TrainingLoss{}).steps;
  });
  if (!one_window) {
    return "\nNo mean training losses: the rows made different numbers of steps, and means over different "
           "windows are not compared.\n";
  }
  std::size_t width = 16;
  for (const SweepRow& row : sweep.rows) width = std::max(width, row.name.size());
  const std::size_t base = sweep.baseline_row();
  const std::vector<double> base_mean = of_row(base, &TrainingLoss::mean_nats),
                            base_forgetful = of_row(base, &TrainingLoss::forgetful_nats);
  std::string text = fmt::format("\nmean training loss, nats, steps [0, {})\n", first->steps);
  text += fmt::format("{:<{}} {:>20} {:>18}   {:>20} {:>18}\n", "", width, "all steps", "gain",
                      "sums forgotten*", "\"gain\"");
  for (std::size_t row = 0; row < sweep.rows.size(); ++row) {
    const std::vector<double> mean = of_row(row, &TrainingLoss::mean_nats),
                              forgetful = of_row(row, &TrainingLoss::forgetful_nats);
    text +=
        fmt::format("{:<{}} {:>20} {:>18}   {:>20} {:>18}\n", sweep.rows[row].name, width, mean_text(mean),
                    row == base ? "baseline" : loss_gain_text(base_mean, mean), mean_text(forgetful),
                    row == base ? "baseline" : loss_gain_text(base_forgetful, forgetful));
  }
  text +=
      "* what a trainer reports that forgets its sums where the last phase "
      "begins and divides by all steps: an artefact of averaging, no gain\n";
  return text;
}

}  // namespace mulligan
