// The table of a sweep's scores.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "framework/core/statistic.h"
#include "tools/stats/markdown_table.h"
#include "tools/sweep/sweep.h"

namespace mulligan {
namespace {

using Cells = std::vector<SweepCell>;  // of a row, by seed

// Fewer seeds say neither how much a row gains nor how much it varies (docs/statistics.md).
constexpr std::size_t least_seeds = 3;

// How much lower `scores` are than `than`, seed by seed: "+0.00120 +- 0.00030".
std::string gain_text(const std::vector<double>& than, const std::vector<double>& scores) {
  if (scores.size() < least_seeds) return "-";
  std::vector<double> gains;
  for (std::size_t seed = 0; seed < scores.size(); ++seed) gains.push_back(than[seed] - scores[seed]);
  const Statistic gain = statistic_of(gains);
  return fmt::format("{:+.5f} +- {:.5f}", gain.mean, gain.deviation.value_or(0));
}

}  // namespace

std::string sweep_table(const Sweep& sweep, const SweepResult& result) {
  const auto all = [&](auto&& holds) { return std::ranges::all_of(result.cells, holds); };
  const bool ttt = result.cells.front().front().with.has_value();
  const bool bits = all([](const Cells& cells) {  // every score is of a text whose bytes were counted
    return std::ranges::all_of(cells, [](const SweepCell& c) { return std::isfinite(c.without.val_bpb); });
  });
  const auto scores_of = [&](const Cells& cells, bool with_ttt) {
    std::vector<double> scores;
    for (const SweepCell& cell : cells) {
      const EvalResult& score = with_ttt ? cell.final_score() : cell.without;
      scores.push_back(bits ? score.val_bpb : score.val_loss_nats);
    }
    return scores;
  };
  const Cells& baseline = result.cells[sweep.baseline_row()];
  std::vector<std::string> head = {bits ? "val_bpb" : "val_loss_nats"};
  for (const double seed : sweep.seeds) head.push_back(fmt::format("seed {:.0f}", seed));
  head.insert(head.end(), {"mean +- sd", "gain +- sd", "TTT gain +- sd"});
  if (!ttt) head.pop_back();
  stats::Table table{head};
  const auto add = [&](const std::string& name, const Cells& cells, bool with_ttt) {
    std::vector<std::string> line = {name};
    const std::vector<double> values = scores_of(cells, with_ttt);
    for (std::size_t seed = 0; seed < values.size(); ++seed)
      line.push_back(fmt::format("{:.5f}{}", values[seed], with_ttt && cells[seed].collapsed ? "*" : ""));
    const Statistic mean = statistic_of(values);
    line.push_back(fmt::format("{:.5f}", mean.mean));
    if (values.size() >= least_seeds) line.back() += fmt::format(" +- {:.5f}", *mean.deviation);
    const bool itself = with_ttt && &cells == &baseline;
    line.push_back(itself ? "baseline" : gain_text(scores_of(baseline, true), values));
    line.push_back(with_ttt ? gain_text(scores_of(cells, false), values) : "");
    line.resize(head.size());
    table.add(line);
  };
  const bool one_training = all(
      [&](const Cells& cells) { return scores_of(cells, false) == scores_of(result.cells.front(), false); });
  if (ttt && one_training) add("no test-time training", result.cells.front(), false);
  bool collapsed = false;
  for (std::size_t row = 0; row < sweep.rows.size(); ++row) {
    const Cells& cells = result.cells[row];
    add(sweep.rows[row].name, cells, true);
    if (!ttt) continue;
    if (!one_training) add("  no test-time training", cells, false);
    std::vector<std::string> line = {"  norms of A, A - A0 at the end"};
    for (const SweepCell& cell : cells) {
      line.push_back(fmt::format("{:.2f}, {:.2f}", cell.norm, cell.drift));
      collapsed = collapsed || cell.collapsed;
    }
    line.resize(head.size());
    table.add(line);
  }
  std::string text = table.text();
  text +=
      fmt::format("gain: lower {} than '{}' of the same seed{}\n", bits ? "bits per byte" : "nats per token",
                  sweep.baseline, ttt ? "; TTT gain: than the same weights without test-time training" : "");
  if (sweep.seeds.size() < least_seeds) text += "fewer than three seeds: no gain and no spread are said\n";
  if (collapsed) text += "* collapsed: after a batch worse than without by more than collapse_margin\n";
  return text;
}

}  // namespace mulligan
