// EMA-Nesterov and the tail average of the arena against the published script: the wrapper's factor and what becomes of the
// average by step.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "framework/config/train_config.h"
#include "framework/plugin/schedule.h"
#include "framework/plugin/wrapper.h"
#include "tests/golden/golden_fixture.h"
#include "tests/support/plugins.h"

namespace mulligan::arena_wrapper_golden_test {
namespace {

// The factor before the pass of a step is that of the rate of the step before. It travels as f32.
TEST(ArenaWrapperBySteps, FactorOfTheLookahead) {
  const GoldenFixture fixture("arena-schedule");
  const nlohmann::json& info = fixture.manifest().at("info").at("sota");
  const std::int64_t total = info.at("train_steps");
  const double base = info.at("initial_lr").at("embed");
  const auto schedule = make_plugin<Schedule>(
      PluginKind::schedule, "powercool",
      fmt::format("coefficient = {:.17g}\npower = 1.2", info.at("power_c").at("embed").get<double>()));
  const auto wrapper = make_plugin<Wrapper>(PluginKind::wrapper, "ema_nesterov", "rate_of = 'embed'");
  const std::vector<std::int32_t> steps = fixture.ints("sota.step");
  const std::vector<double> factors = fixture.doubles("sota.lookahead");
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i] == 0) {
      EXPECT_EQ(factors[i], 0.0);  // no update precedes the first pass
      continue;
    }
    const std::int64_t before = steps[i] - 1;
    const mlg_rate rate =
        schedule->rate({before, total, static_cast<double>(before) / static_cast<double>(total), 0}, base);
    const mlg_group_rate groups[] = {{"matrices", 1, 1}, {"embed", rate.lr, base}};
    std::vector<float> scalars(1);
    wrapper->scalars({steps[i], total, 0, groups, 2}, scalars);
    EXPECT_NEAR(static_cast<double>(scalars[0]), factors[i], 6e-8 * factors[i]) << "step " << steps[i];
  }
}

TEST(ArenaWrapperBySteps, WhatBecomesOfTheTailAverage) {
  const GoldenFixture fixture("arena-schedule");
  const std::vector<std::int32_t> steps = fixture.ints("sota.step"),
                                  stored = fixture.ints("sota.tail_ema_updates");
  EmaConfig ema;  // spec 5.6
  ema.tau = 150, ema.from_step = 2400, ema.until_step = 2900, ema.blend = 0.6;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const AverageStep step = average_step(ema, steps[i] + 1);
    EXPECT_EQ(step == AverageStep::begins    ? 1
              : step == AverageStep::follows ? 2
                                             : 0,
              stored[i])
        << "step " << steps[i];
  }
}

}  // namespace
}  // namespace mulligan::arena_wrapper_golden_test
