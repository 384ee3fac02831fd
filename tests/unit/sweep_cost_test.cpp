// Costs of the rows of a sweep, and ladders of its lengths.
#include <gtest/gtest.h>

#include <filesystem>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "tests/support/scratch_folder.h"
#include "tests/unit/config_testing.h"
#include "tools/sweep/sweep.h"

namespace mulligan::sweep_cost_test {
namespace {

// Rows with one seed each: seconds to the target, device bytes, loss; joules where not negative.
struct Point {
  double seconds, bytes, loss, joules;
};

struct Made {
  Sweep sweep;
  SweepResult result;
};

Made made(const std::vector<std::vector<Point>>& rows) {
  Made made;
  made.sweep.metric = "val_loss_nats";
  made.sweep.costs = true;
  made.sweep.target_loss_nats = 3;
  for (const auto& seeds : rows) {
    made.sweep.rows.push_back({"row " + std::to_string(made.sweep.rows.size()), "", {}, 1});
    std::vector<SweepCell> cells;
    for (const Point& point : seeds) {
      SweepCell cell;
      cell.without.val_loss_nats = point.loss;
      SweepCost cost;
      cost.tokens_per_second = 1000 / point.seconds;
      if (point.seconds < 1e9) cost.seconds_to_target = point.seconds;
      cost.device_bytes = cost.process_bytes = point.bytes;
      if (point.joules >= 0) {
        cost.joules = point.joules;
      } else {
        cost.energy_absent = {"CPUs: this system has no powercap"};
      }
      cell.cost = cost;
      cells.push_back(cell);
    }
    made.result.cells.push_back(cells);
  }
  made.sweep.seeds = std::vector<double>(rows.front().size(), 1);
  return made;
}

std::vector<bool> front(const Made& made) {
  std::vector<bool> found;
  for (const RowCost& row : row_costs(made.sweep, made.result)) found.push_back(row.pareto);
  return found;
}

TEST(SweepCost, TheFrontIsWhatNoRowBeats) {
  // The second is worse than the first in all; the third is slower and better; the fourth equals the first.
  EXPECT_EQ(front(made({{{1, 10, 2.0, -1}}, {{2, 11, 2.1, -1}}, {{5, 10, 1.9, -1}}, {{1, 10, 2.0, -1}}})),
            (std::vector<bool>{true, false, true, true}));
  // Means over seeds decide, and a row whose seeds do not all come to the target is never faster.
  EXPECT_EQ(front(made({{{1, 10, 2.0, -1}, {3, 10, 2.0, -1}}, {{0.1, 10, 2.0, -1}, {1e9, 10, 2.0, -1}}})),
            (std::vector<bool>{true, false}));
  // Energy counts where every row has it.
  EXPECT_EQ(front(made({{{1, 10, 2.0, 50}}, {{2, 11, 2.1, 40}}})), (std::vector<bool>{true, true}));
  EXPECT_EQ(front(made({{{1, 10, 2.0, 50}}, {{2, 11, 2.1, -1}}})), (std::vector<bool>{true, false}));
}

TEST(SweepCost, TheTableSaysWhatIsAbsent) {
  const Made two = made({{{1, 2e6, 2.0, -1}, {3, 2e6, 2.2, -1}}, {{1e9, 4e6, 2.1, -1}, {1, 4e6, 2.1, -1}}});
  const std::string text = cost_table(two.sweep, two.result);
  EXPECT_TRUE(contains(text, "| 2.00 +- 1.41 ", "| 2.10000 +- 0.14142 ", "s to 3 nats",
                       "No energy: CPUs: this system has no powercap.\n"));
  EXPECT_EQ(text.find("nan"), text.npos) << text;
}

TEST(SweepCost, IsReadFromResultAndMetrics) {
  const test_support::ScratchFolder scratch;
  const auto write = [&](const std::string& energy) {
    write_file_atomically(
        scratch.path() / "result.json",
        R"({"tokens_per_second": 500.5, "peak_memory_bytes": 7, "peak_device_memory_bytes": 5)" + energy +
            "}");
  };
  write("");
  write_file_atomically(
      scratch.path() / "metrics.jsonl",
      R"({"event":"step","step":10,"tokens":1,"elapsed_seconds":1.5,"window_loss_nats":4.0})"
      "\n"
      R"({"event":"step","step":20,"tokens":2,"elapsed_seconds":3.0,"window_loss_nats":2.9})"
      "\n"
      R"({"event":"step","step":30,"tokens":3,"elapsed_seconds":4.5,"window_loss_nats":2.5})"
      "\n");
  SweepCost cost = read_cost(scratch.path(), 3.0);
  EXPECT_EQ(cost.seconds_to_target, 3.0);
  EXPECT_EQ(cost.tokens_per_second, 500.5);
  EXPECT_EQ(cost.device_bytes, 5);
  EXPECT_FALSE(cost.joules.has_value());
  EXPECT_EQ(cost.energy_absent, std::vector<std::string>{"metrics.energy is off"});
  EXPECT_FALSE(read_cost(scratch.path(), 1.0).seconds_to_target.has_value());  // never reached
  EXPECT_FALSE(read_cost(scratch.path(), 0).seconds_to_target.has_value());    // not asked for
  write(R"(, "energy": {"joules": 12.5, "joules_per_token": 0.5, "absent": []})");
  cost = read_cost(scratch.path(), 3.0);
  EXPECT_EQ(cost.joules, 12.5);
  EXPECT_EQ(cost.joules_per_token, 0.5);
  write(R"(, "energy": {"joules": null, "joules_per_token": null, "absent": ["why"]})");
  EXPECT_EQ(read_cost(scratch.path(), 0).energy_absent, std::vector<std::string>{"why"});
  write(R"(, "energy": 5)");
  EXPECT_THROW(read_cost(scratch.path(), 0), Error);
}

// Rows "base" and "other" over three seeds; `gains` of the other by seed.
LadderRung rung_of(double factor, const std::vector<double>& gains) {
  LadderRung rung;
  rung.factor = factor;
  rung.steps = static_cast<std::int64_t>(100 * factor);
  rung.sweep.seeds = {1, 2, 3};
  rung.sweep.baseline = "base";
  rung.sweep.metric = "val_loss_nats";
  rung.sweep.rows.resize(2);
  rung.sweep.rows[0].name = "base";
  rung.sweep.rows[1].name = "other";
  rung.result.cells.resize(2);
  for (const double gain : gains) {
    SweepCell base, other;
    base.without.val_loss_nats = 4 - factor;
    other.without.val_loss_nats = 4 - factor - gain;
    rung.result.cells[0].push_back(base);
    rung.result.cells[1].push_back(other);
  }
  return rung;
}

TEST(SweepLadder, GainsByLengthAndByDoublingAreTold) {
  const std::string table = ladder_table(
      {rung_of(1, {0.10, 0.11, 0.09}), rung_of(2, {0.20, 0.21, 0.19}), rung_of(4, {0.30, 0.312, 0.288})});
  EXPECT_TRUE(contains(table, "| other", "400 steps", "+0.20000 +- 0.01000"));
  EXPECT_TRUE(contains(table, "+0.10000"));  // a doubling
}

TEST(SweepLadder, FarBelowTheTargetIsSaid) {
  EXPECT_EQ(ladder_table({rung_of(1, {0.1, 0.1, 0.1})}), "") << "one length is no ladder";
  EXPECT_TRUE(contains(short_runs_text(400, 3250), "400 steps, 12 % of the 3250"));
  EXPECT_EQ(short_runs_text(1625, 3250), "");
  EXPECT_EQ(short_runs_text(400, 0), "");
}

TEST(SweepLadder, MultipliesStepsAndHorizon) {
  const ScratchFolder folder;
  folder.write("run.toml", kSmallConfig + "[schedule]\nplugin = \"warmdown\"\nhorizon_steps = 12\n");
  const auto lengths = [&](const std::string& more) {
    return ladder_lengths(
        read_sweep(folder.write("sweep.toml",
                                "config = \"run.toml\"\ndirectory = \"runs/s\"\nseeds = [1]\n" + more)),
        {});
  };
  const std::string rows = "[[rows]]\nname = \"a\"\n";
  const auto three = lengths("ladder = [1, 2, 4]\n" + rows);
  ASSERT_EQ(three.size(), 3u);
  EXPECT_EQ(three[2].steps, 40);
  EXPECT_EQ(three[2].sweep.directory, "runs/s/x4");
  EXPECT_EQ(three[2].sweep.own.settings,
            (std::vector<std::string>{"train.steps=40", "schedule.horizon_steps=48"}));
  EXPECT_EQ(lengths(rows).front().sweep.directory, "runs/s");
  EXPECT_TRUE(contains(error_of([&] { lengths("ladder = [2, 1]\n" + rows); }), "rising whole numbers"));
  EXPECT_TRUE(contains(error_of([&] { lengths("ladder = [1, 2]\n" + rows + "set = [\"train.steps=5\"]\n"); }),
                       "take it out of the row"));
}

}  // namespace
}  // namespace mulligan::sweep_cost_test
