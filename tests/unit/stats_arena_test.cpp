// The rules of the optimiser benchmark on runs and on logs as they are published.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/sentence.h"
#include "tools/stats/arena_logs.h"
#include "tools/stats/arena_rules.h"

namespace mulligan::stats::stats_arena_test {
namespace {

ArenaRun run_of(std::string name, std::map<std::int64_t, double> losses) {
  return {std::move(name), std::move(losses)};
}

TEST(StatsArena, OnlyStepsThatAllRunsHaveCount) {
  const std::vector<ArenaRun> runs = {run_of("a", {{100, 3.30}, {200, 3.270}, {210, 3.20}}),
                                      run_of("b", {{100, 3.30}, {200, 3.272}})};
  const std::vector<ArenaStep> steps = judge_arena(runs);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_NEAR(steps[1].mean, 3.271, 1e-12);
  EXPECT_NEAR(steps[1].deviation.value(), 0.002 / std::sqrt(2), 1e-12);
  EXPECT_NEAR(steps[1].value, 0.009 * std::sqrt(2), 1e-12);
  ASSERT_TRUE(earliest_accepted(steps));
  EXPECT_EQ(earliest_accepted(steps)->step, 200);
  EXPECT_FALSE(steps[0].accepted);
}

TEST(StatsArena, ManyRunsNeedASmallerDistance) {
  EXPECT_FALSE(judge_arena_step(1, std::vector<double>(1, 3.2785)).accepted);
  EXPECT_FALSE(judge_arena_step(1, std::vector<double>(7, 3.2785)).accepted);        // 0.00397
  EXPECT_TRUE(judge_arena_step(1, std::vector<double>(8, 3.2785)).accepted);         // 0.00424
  EXPECT_NEAR(judge_arena_step(1, std::vector<double>(1, 3.276)).p, 0.00104, 1e-5);  // z = 3.0769
}

TEST(StatsArena, ARunThatDivergedRefusesTheResult) {
  const ArenaStep step =
      judge_arena_step(1, std::vector<double>{3.2, 3.2, std::numeric_limits<double>::quiet_NaN()});
  EXPECT_FALSE(step.accepted);
}

TEST(StatsArena, ARunCountsOnce) {
  const ArenaRun run = run_of("a", {{0, 10.8}, {100, 3.5}, {200, 3.27}});
  ArenaRun copy = run;
  copy.name = "b";
  ASSERT_TRUE(same_arena_run(std::vector{run, copy}));
  EXPECT_EQ(same_arena_run(std::vector{run, copy})->second, "b");
  copy.losses[200] = 3.28;
  EXPECT_FALSE(same_arena_run(std::vector{run, copy}));
}

constexpr const char* two_runs =
    "print(f\"step:{step}/{steps} val_loss:{loss}\")\n"
    "====================================\n"
    "step:0/20 val_loss:10.82584 train_time:0.001s step_avg:nanms\n"
    "step:1/20 train_time:0.2s\n"
    "step:10/20 val_loss:3.50000 train_time:1s step_avg:1ms\n"
    "step:20/20 val_loss:3.27000 val_avg_loss:3.27 val_ema_loss:3.26 train_time:2s\n"
    "step:0/20 val_loss:10.82584 train_time:0.001s\n"
    "step:10/20 val_loss:3.51000 train_time:1s\n"
    "step:20/20 val_loss:nan train_time:2s\n";

TEST(StatsArena, ALogCanHoldSeveralRuns) {
  const ArenaLog log = parse_arena_log(two_runs, "log", "val_loss");
  ASSERT_EQ(log.runs.size(), 2u);
  EXPECT_EQ(log.code, "print(f\"step:{step}/{steps} val_loss:{loss}\")");
  EXPECT_EQ(log.runs[1].name, "log run 2");
  EXPECT_EQ(log.runs[0].losses, (std::map<std::int64_t, double>{{0, 10.82584}, {10, 3.5}, {20, 3.27}}));
  EXPECT_EQ(log.runs[1].losses.at(10), 3.51);
  EXPECT_TRUE(std::isnan(log.runs[1].losses.at(20)));
  EXPECT_EQ(log.planned_steps, (std::vector<std::int64_t>{20, 20}));
}

TEST(StatsArena, AnotherLossOfALogCanBeTheScore) {
  const std::string averaged =
      "step:20/20 val_loss:3.28243 val_avg_loss:3.28 val_ema_loss:3.27833 train_time:2s\n";
  EXPECT_EQ(parse_arena_log(averaged, "log", "val_ema_loss").runs[0].losses.at(20), 3.27833);
  EXPECT_EQ(parse_arena_log(averaged, "log", "val_loss").runs[0].losses.at(20), 3.28243);
}

std::string log_refusal(const std::string& text) {
  return refusal_of(ExitCode::bad_data, [&] { parse_arena_log(text, "log", "val_loss"); });
}

TEST(StatsArena, LogsThatSayTwoThingsAreRefused) {
  EXPECT_TRUE(contains(log_refusal("nothing\n"), "no log of the optimiser benchmark"));
  EXPECT_TRUE(
      contains(log_refusal("step:1/9 val_loss:3.1x\n"), "line 1: the validation has no number 'val_loss'"));
  EXPECT_TRUE(contains(log_refusal("step:1/9 val_loss:3.1\nstep:1/9 val_loss:3.2\n"), "two losses"));
  EXPECT_TRUE(contains(log_refusal("step:1/9 val_loss:3.1\nstep:2/8 val_loss:3\n"), "goes on as one of 8"));
}

}  // namespace
}  // namespace mulligan::stats::stats_arena_test
