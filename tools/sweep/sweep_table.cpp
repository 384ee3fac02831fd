// The table of a sweep.
#include <algorithm>
#include <cmath>

#include "framework/core/statistic.h"
#include "tools/sweep/sweep.h"

namespace mulligan {
namespace {

// Whether every score is of a text whose bytes were counted.
bool has_bits(const SweepResult& result) {
  return std::ranges::all_of(result.cells, [](const auto& cells) {
    return std::ranges::all_of(cells,
                               [](const SweepCell& cell) { return std::isfinite(cell.without.val_bpb); });
  });
}

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

class Table {
 public:
  Table(const Sweep& sweep, const SweepResult& result)
      : sweep_(sweep),
        result_(result),
        bits_(has_bits(result)),
        baseline_(scores_of(result.cells[sweep.baseline_row()], true)),
        ttt_(result.cells.front().front().with.has_value()),
        one_training_(std::ranges::all_of(result.cells, [&](const auto& cells) {
          return scores_of(cells, false) == scores_of(result.cells.front(), false);
        })) {
    for (const SweepRow& row : sweep.rows) width_ = std::max(width_, row.name.size());
  }

  std::string text() {
    head();
    if (ttt_ && one_training_) plain_line("no test-time training", result_.cells.front());
    for (std::size_t row = 0; row < sweep_.rows.size(); ++row) {
      const std::vector<SweepCell>& cells = result_.cells[row];
      scores(sweep_.rows[row].name, cells, true);
      const bool first = row == sweep_.baseline_row();
      text_ += fmt::format(" {:>20}", first ? "baseline" : gain_text(baseline_, scores_of(cells, true)));
      if (ttt_) text_ += fmt::format(" {:>20}", gain_text(scores_of(cells, false), scores_of(cells, true)));
      text_ += "\n";
      if (!ttt_) continue;
      if (!one_training_) plain_line("  no test-time training", cells);
      drift_line(cells);
    }
    text_ += fmt::format("gain: lower {} than '{}' of the same seed{}\n",
                         bits_ ? "bits per byte" : "nats per token", sweep_.baseline,
                         ttt_ ? "; TTT gain: than the same weights without test-time training" : "");
    if (sweep_.seeds.size() < least_seeds)
      text_ += "fewer than three seeds: no gain and no spread are said\n";
    if (collapsed_) text_ += "* collapsed: after a batch worse than without by more than collapse_margin\n";
    return text_;
  }

 private:
  // Of each seed: bits per byte, or nats per token.
  std::vector<double> scores_of(const std::vector<SweepCell>& cells, bool with_ttt) const {
    std::vector<double> scores;
    for (const SweepCell& cell : cells) {
      const EvalResult& score = with_ttt ? cell.final_score() : cell.without;
      scores.push_back(bits_ ? score.val_bpb : score.val_loss_nats);
    }
    return scores;
  }

  void head() {
    text_ = fmt::format("{:<{}}", bits_ ? "val_bpb" : "val_loss_nats", width_);
    for (const double seed : sweep_.seeds) text_ += fmt::format(" {:>12}", fmt::format("seed {:.0f}", seed));
    text_ += fmt::format(" {:>20} {:>20}", "mean +- sd", "gain +- sd");
    text_ += ttt_ ? fmt::format(" {:>20}\n", "TTT gain +- sd") : "\n";
  }

  void scores(const std::string& name, const std::vector<SweepCell>& cells, bool with_ttt) {
    text_ += fmt::format("{:<{}}", name, width_);
    const std::vector<double> values = scores_of(cells, with_ttt);
    for (std::size_t seed = 0; seed < values.size(); ++seed) {
      const bool mark = with_ttt && cells[seed].collapsed;
      text_ += fmt::format(" {:>12}", fmt::format("{:.5f}{}", values[seed], mark ? "*" : " "));
    }
    const Statistic all = statistic_of(values);
    const bool varies = values.size() >= least_seeds;
    text_ += fmt::format(" {:>20}", varies ? fmt::format("{:.5f} +- {:.5f}", all.mean, *all.deviation)
                                           : fmt::format("{:.5f}", all.mean));
  }

  void plain_line(const std::string& name, const std::vector<SweepCell>& cells) {
    scores(name, cells, false);
    text_ += fmt::format(" {:>20}\n", gain_text(baseline_, scores_of(cells, false)));
  }

  void drift_line(const std::vector<SweepCell>& cells) {
    text_ += fmt::format("{:<{}}", "  |A|, |A - A0| at the end", width_);
    for (const SweepCell& cell : cells) {
      text_ += fmt::format(" {:>12}", fmt::format("{:.2f}, {:.2f}", cell.norm, cell.drift));
      collapsed_ = collapsed_ || cell.collapsed;
    }
    text_ += "\n";
  }

  const Sweep& sweep_;
  const SweepResult& result_;
  bool bits_;
  std::vector<double> baseline_;  // its scores, by seed
  bool ttt_;
  bool one_training_;  // all rows score the same weights
  bool collapsed_ = false;
  std::size_t width_ = 24;
  std::string text_;
};

}  // namespace

std::string sweep_table(const Sweep& sweep, const SweepResult& result) {
  return Table(sweep, result).text();
}

}  // namespace mulligan
