#include "tools/sweep/sweep.h"

#include <fmt/format.h>

#include <boost/math/statistics/linear_regression.hpp>
#include <cmath>
#include <filesystem>
#include <optional>

#include "framework/core/error.h"
#include "framework/core/statistic.h"
#include "tools/stats/markdown_table.h"
#include "tools/stats/t_tests.h"

namespace mulligan {
namespace {

// Of row number `row`, by seed.
std::vector<double> gains(const LadderRung& rung, std::size_t row) {
  const std::vector<SweepCell>& base = rung.result.cells[rung.sweep.baseline_row()];
  std::vector<double> by_seed;
  const std::string& metric = rung.sweep.metric;
  for (std::size_t seed = 0; seed < base.size(); ++seed)
    by_seed.push_back(base[seed].final_value(metric) - rung.result.cells[row][seed].final_value(metric));
  return by_seed;
}

}  // namespace

std::vector<LadderRung> ladder_lengths(const Sweep& sweep, const std::vector<std::string>& overrides) {
  const RunConfig config = load_run_config(sweep.config, overrides).config;
  if (sweep.ladder.empty()) return {{1, config.train.steps, sweep, {}}};
  if (config.train.steps == 0)
    throw config_error("'{}': a ladder multiplies train.steps, which is 0; set it.", sweep.config);
  for (const SweepRow& row : sweep.rows) {
    for (const std::string& set : row.set) {
      if (!set.starts_with("train.steps=")) continue;
      throw config_error(
          "the row '{}' sets train.steps, which the ladder sets for all rows; take it out of the row.",
          row.name);
    }
  }
  std::vector<LadderRung> lengths;
  for (const double factor : sweep.ladder) {
    const auto times = static_cast<std::int64_t>(factor);
    LadderRung length{factor, config.train.steps * times, sweep, {}};
    length.sweep.directory = (std::filesystem::path(sweep.directory) / fmt::format("x{}", times)).string();
    std::vector<std::string>& own = length.sweep.own.settings;
    own.push_back(fmt::format("train.steps={}", length.steps));
    if (const std::int64_t horizon = horizon_steps(config); horizon != config.train.steps)
      own.push_back(fmt::format("schedule.horizon_steps={}", horizon * times));
    lengths.push_back(std::move(length));
  }
  return lengths;
}

std::string ladder_table(const std::vector<LadderRung>& rungs) {
  if (rungs.size() < 2) return {};
  const Sweep& sweep = rungs.front().sweep;
  std::vector<std::string> head = {"gain over " + sweep.baseline};
  std::vector<double> doublings;
  for (const LadderRung& rung : rungs) {
    head.push_back(fmt::format("{} steps", rung.steps));
    doublings.push_back(std::log2(rung.factor));
  }
  head.insert(head.end(), {"per doubling", "95 %"});
  stats::Table table{head};
  for (std::size_t row = 0; row < sweep.rows.size(); ++row) {
    if (row == sweep.baseline_row()) continue;
    std::vector<std::string> cells = {sweep.rows[row].name};
    std::vector<std::vector<double>> by_seed(sweep.seeds.size());
    for (const LadderRung& rung : rungs) {
      const std::vector<double> found = gains(rung, row);
      for (std::size_t seed = 0; seed < found.size(); ++seed) by_seed[seed].push_back(found[seed]);
      const Statistic gain = statistic_of(found);
      cells.push_back(gain.deviation ? fmt::format("{:+.5f} +- {:.5f}", gain.mean, *gain.deviation)
                                     : fmt::format("{:+.5f}", gain.mean));
    }
    std::vector<double> slopes;
    for (const std::vector<double>& seed : by_seed)
      slopes.push_back(boost::math::statistics::simple_ordinary_least_squares(doublings, seed).second);
    cells.push_back(fmt::format("{:+.5f}", statistic_of(slopes).mean));
    const auto interval = slopes.size() < 2 ? std::nullopt : std::optional(stats::t_interval(slopes));
    cells.push_back(interval ? fmt::format("{:+.5f} to {:+.5f}", interval->low, interval->high) : "-");
    table.add(std::move(cells));
  }
  return table.text();
}

std::string short_runs_text(std::int64_t steps, std::int64_t target) {
  if (target == 0 || 2 * steps >= target) return {};
  return fmt::format(
      "Note: the longest runs have {} steps, {:.0f} % of the {} that they are compared for; what leads after few steps need not "
      "lead after many.\n",
      steps, 100.0 * static_cast<double>(steps) / static_cast<double>(target), target);
}

}  // namespace mulligan
