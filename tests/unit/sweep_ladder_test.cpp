// Gains of a sweep's rows by the length of its trainings.
#include "tools/sweep/ladder.h"

#include <gtest/gtest.h>

#include "tests/unit/config_testing.h"

namespace mulligan::sweep_ladder_test {
namespace {

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

std::string table_of(const std::vector<double>& first, const std::vector<double>& second,
                     const std::vector<double>& third) {
  return ladder_table({rung_of(1, first), rung_of(2, second), rung_of(4, third)});
}

TEST(SweepLadder, ALeadThatGrowsIsTold) {
  const std::string table = table_of({0.10, 0.11, 0.09}, {0.20, 0.21, 0.19}, {0.30, 0.312, 0.288});
  EXPECT_TRUE(contains(table, "| other"));
  EXPECT_TRUE(contains(table, "400 steps"));
  EXPECT_TRUE(contains(table, "+0.20000 +- 0.01000"));
  EXPECT_TRUE(contains(table, "+0.10000"));  // a doubling
  EXPECT_TRUE(contains(table, "leads by more"));
}

TEST(SweepLadder, ALeadThatIsLostChangesSides) {
  EXPECT_TRUE(
      contains(table_of({0.10, 0.11, 0.09}, {0.05, 0.06, 0.04}, {-0.02, -0.01, -0.03}), "changes sides"));
  EXPECT_TRUE(
      contains(table_of({0.10, 0.11, 0.09}, {0.06, 0.07, 0.05}, {0.02, 0.03, 0.01}), "leads by less"));
}

TEST(SweepLadder, SeedsThatDisagreeSayNoTrend) {
  EXPECT_TRUE(
      contains(table_of({0.1, -0.1, 0.0}, {0.0, 0.1, -0.1}, {-0.1, 0.0, 0.1}), "no trend beyond chance"));
}

TEST(SweepLadder, OneLengthIsNoLadder) {
  EXPECT_EQ(ladder_table({rung_of(1, {0.1, 0.1, 0.1})}), "");
}

TEST(SweepLadder, FarBelowTheTargetIsSaid) {
  EXPECT_TRUE(contains(short_runs_text(400, 3250), "400 steps, 12 % of the 3250"));
  EXPECT_EQ(short_runs_text(1625, 3250), "");
  EXPECT_EQ(short_runs_text(400, 0), "");
}

TEST(SweepLadder, MultipliesStepsAndHorizon) {
  const TemporaryFolder folder;
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
}  // namespace mulligan::sweep_ladder_test
