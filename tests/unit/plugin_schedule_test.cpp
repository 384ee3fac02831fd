// Schedule plugins: what the golden fixtures leave out: units, decay of the peak, cosine, refused settings.
#include "framework/plugin/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/plugins.h"
#include "tests/support/sentence.h"

namespace mulligan::plugin_schedule_test {
namespace {

std::unique_ptr<Schedule> make(const std::string& name, const std::string& toml = "") {
  return make_plugin<Schedule>(MLG_SCHEDULE, name, toml);
}
mlg_progress at_step(std::int64_t step, std::int64_t total) {
  return {step, total, total ? static_cast<double>(step) / static_cast<double>(total) : 0, 0};
}
mlg_progress at_budget(double fraction) {
  return {0, 0, fraction, 0};
}

// Over steps: the share of the budget that they take at the pace so far, as the challenge's baseline decides it.
TEST(ScheduleWarmdown, StepsTakeWhatThePaceSays) {
  const auto schedule = make("warmdown", "steps = 1200\nmin_factor = 0");
  const auto naive = [](double elapsed, std::int64_t step) {
    const double warmdown = 1200 * elapsed / static_cast<double>(step), left = 600 - elapsed;
    return left <= warmdown ? left / warmdown : 1.0;
  };
  EXPECT_EQ(schedule->rate({0, 0, 0, 0}, 0.04).lr, 0.04);
  bool full = false, falling = false;
  for (const double seconds_per_step : {0.04354, 0.2, 0.6}) {
    for (std::int64_t step = 1; step * seconds_per_step < 600; step += 7) {
      const double elapsed = static_cast<double>(step) * seconds_per_step, expected = naive(elapsed, step);
      EXPECT_NEAR(schedule->rate({step, 0, elapsed / 600, 0}, 1.0).lr, expected, 1e-9) << step;
      (expected < 1 ? falling : full) = true;
    }
  }
  EXPECT_TRUE(full && falling);
  EXPECT_EQ(schedule->rate({13780, 0, 1, 0}, 1.0).lr, 0);
  // By steps the script's other rule: from so many steps before the end, the first one included.
  const auto by_step = make("warmdown", "steps = 20\nmin_factor = 0\nby = 'step'");
  for (std::int64_t step = 0; step <= 100; ++step)
    EXPECT_NEAR(by_step->rate(at_step(step, 100), 1.0).lr, std::min(1.0, (100 - step) / 20.0), 1e-12);
  EXPECT_NEAR(by_step->rate(at_step(0, 10), 1.0).lr, 0.5, 1e-12);
}

// By steps the factor of step k (from 1) is k / warmup_steps.
TEST(ScheduleWarmup, TheFirstStepLearns) {
  for (const std::string name : {"constant", "cosine", "warmdown", "sgdr", "powercool"}) {
    const std::string own = name == "sgdr"        ? "\nperiod = 1000"
                            : name == "powercool" ? "\ncoefficient = 9"
                                                  : "";
    const auto plain = make(name, own), steps = make(name, "warmup_steps = 4" + own),
               share = make(name, "warmup_fraction = 0.5" + own);
    for (std::int64_t step = 0; step < 4; ++step) {
      const double factor = static_cast<double>(step + 1) / 4,
                   full = name == "cosine" ? 1 : plain->rate(at_step(step, 8), 1.0).lr;
      EXPECT_DOUBLE_EQ(steps->rate(at_step(step, 8), 1.0).lr, factor * full) << name << " " << step;
      EXPECT_DOUBLE_EQ(share->rate(at_step(step, 8), 1.0).lr, factor * full) << name << " " << step;
    }
    if (name != "powercool") {  // which needs a number of steps
      EXPECT_GT(share->rate(at_budget(0), 1.0).lr, 0) << name;
      // At the pace so far: 10 steps took a tenth of the clock.
      const double full = name == "cosine" ? 1 : plain->rate({10, 0, 0.1, 0}, 1.0).lr;
      EXPECT_NEAR(share->rate({10, 0, 0.1, 0}, 1.0).lr, 0.22 * full, 1e-12) << name;
    }
    EXPECT_TRUE(
        refuses([&] { make(name, "warmup_steps = 4\nwarmup_fraction = 0.5" + own); }, "leave one out"))
        << name;
  }
}

TEST(ScheduleCosine, WarmUpPeakAndFloor) {
  const auto schedule = make("cosine", "warmup_fraction = 0.2\nmin_factor = 0.1\nby = 'step'");
  const auto lr = [&](std::int64_t step) { return schedule->rate(at_step(step, 100), 2.0).lr; };
  EXPECT_DOUBLE_EQ(lr(0), 0.1);
  EXPECT_DOUBLE_EQ(lr(9), 1.0);
  EXPECT_DOUBLE_EQ(lr(19), 2.0);
  EXPECT_DOUBLE_EQ(lr(20), 2.0);
  EXPECT_NEAR(lr(60), 2.0 * 0.55, 1e-15);  // half-way between peak and floor
  EXPECT_NEAR(lr(100), 0.2, 1e-15);
  EXPECT_NEAR(lr(105), 0.2, 1e-15) << "stays at the floor past the end";
  for (std::int64_t step = 20; step < 100; ++step) EXPECT_GE(lr(step), lr(step + 1));
}

TEST(ScheduleSgdr, PeakDecaysPerCycleAndNeverFallsBelowTheFloor) {
  const auto schedule = make("sgdr", "period = 10\neta_min = 0.1\ndecay = 0.5");
  EXPECT_EQ(schedule->rate(at_step(0, 0), 1.0).lr, 1.0);
  EXPECT_EQ(schedule->rate(at_step(10, 0), 1.0).lr, 0.5);
  EXPECT_EQ(schedule->rate(at_step(20, 0), 1.0).lr, 0.25);
  EXPECT_NEAR(schedule->rate(at_step(15, 0), 1.0).lr, 0.3, 1e-15);
  EXPECT_EQ(schedule->rate(at_step(60, 0), 1.0).lr, 0.1);
  EXPECT_EQ(schedule->rate(at_step(60, 0), 1.0).cycle, 6);
}

TEST(ScheduleSgdr, RestartsByShareOfTheBudget) {
  const auto schedule = make("sgdr", "period = 0.2\nperiod_multiplier = 3\nby = 'budget'");
  EXPECT_EQ(schedule->rate(at_budget(0.0), 1.0).cycle, 0);
  EXPECT_EQ(schedule->rate(at_budget(0.199), 1.0).cycle, 0);
  EXPECT_EQ(schedule->rate(at_budget(0.2), 1.0).cycle, 1);
  EXPECT_EQ(schedule->rate(at_budget(0.2), 1.0).lr, 1.0);
  EXPECT_EQ(schedule->rate(at_budget(0.79), 1.0).cycle, 1);
  EXPECT_EQ(schedule->rate(at_budget(0.81), 1.0).cycle, 2);
}

TEST(ScheduleSgdr, CyclesGrowByAnyFactorFromOne) {
  for (const double factor : {1.0, 1.25, 2.0}) {
    const auto schedule = make("sgdr", fmt::format("period = 8\nperiod_multiplier = {:.17g}", factor));
    double start = 0, length = 8;
    for (std::int64_t cycle = 0; cycle < 12; ++cycle) {
      const mlg_rate before = schedule->rate({0, 0, 0, 0}, 1.0);
      EXPECT_EQ(before.cycle, 0);
      const auto first = static_cast<std::int64_t>(std::ceil(start));
      EXPECT_EQ(schedule->rate(at_step(first, 0), 1.0).cycle, cycle) << factor << " at step " << first;
      if (first > 0) {
        EXPECT_EQ(schedule->rate(at_step(first - 1, 0), 1.0).cycle, cycle - 1)
            << factor << " before step " << first;
      }
      start += length;
      length *= factor;
    }
  }
}

TEST(ScheduleRefusals, EachSaysHowToMendIt) {
  EXPECT_TRUE(refuses([] { make("sgdr", "period = 10\nby = 'budget'"); }, "share of the budget"));
  EXPECT_TRUE(refuses([] { make("sgdr", "period = 0.5\nby = 'step'"); }, "counts steps"));
  EXPECT_TRUE(refuses([] { make("sgdr"); }, "period")) << "period is required";
  const auto schedule = make("warmdown", "by = 'step'");
  EXPECT_TRUE(refuses([&] { schedule->rate(at_step(5, 0), 1.0); }, "bounded by its wall clock"));
}

}  // namespace
}  // namespace mulligan::plugin_schedule_test
