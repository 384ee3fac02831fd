// The arena's rates, momenta and bounds by step against the published scripts. Tolerance 1e-12, relative.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "framework/plugin/schedule.h"
#include "tests/golden/golden_fixture.h"
#include "tests/support/plugin_runner.h"
#include "tests/support/plugins.h"

namespace mulligan::arena_schedule_golden_test {
namespace {

void expect_close(double actual, double expected, const std::string& what) {
  EXPECT_NEAR(actual, expected, 1e-12 * std::abs(expected)) << what;
}

// The groups of a script, each under a schedule: its rates and, with `momentum`, that.
void expect_rates(const GoldenFixture& fixture, const std::string& script, const std::string& group,
                  const std::string& plugin, const std::string& keys) {
  const nlohmann::json& info = fixture.manifest().at("info").at(script);
  const std::int64_t total = info.at("train_steps");
  const auto schedule = make_plugin<Schedule>(MLG_SCHEDULE, plugin, keys);
  const std::vector<std::int32_t> steps = fixture.ints(script + ".step");
  const std::vector<double> rates = fixture.doubles(script + ".lr." + group);
  ASSERT_EQ(steps.size(), rates.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const double done = static_cast<double>(steps[i]) / static_cast<double>(total);
    const mlg_rate rate =
        schedule->rate({steps[i], total, done, 0}, info.at("initial_lr").at(group).get<double>());
    expect_close(rate.lr, rates[i], fmt::format("{} {} step {}", script, group, steps[i]));
    if (group != "matrices" || !fixture.has(script + ".momentum")) continue;
    expect_close(0.95 * rate.momentum_factor, fixture.doubles(script + ".momentum")[i],
                 fmt::format("{} momentum step {}", script, steps[i]));
  }
}

TEST(ArenaScheduleGolden, StableThenLinear) {
  const GoldenFixture fixture("arena-schedule");
  // spec: the share of the run over which the rate falls; of muonh's matrices all of it.
  const std::map<std::string, double> shares = {{"baseline", 0.7}, {"normuon", 0.7}, {"muonh", 0.85}};
  for (const auto& [script, share] : shares) {
    for (const std::string group : {"embed", "head", "vectors", "matrices"}) {
      const bool whole = script == "muonh" && group == "matrices";
      expect_rates(fixture, script, group, "warmdown",
                   fmt::format("fraction = {}\nmin_factor = 0\nby = 'step'", whole ? 1.0 : share));
    }
  }
}

TEST(ArenaScheduleGolden, PowerCoolAndItsMomentum) {
  const GoldenFixture fixture("arena-schedule");
  const nlohmann::json& info = fixture.manifest().at("info").at("sota");
  for (const auto& [group, coefficient] : info.at("power_c").items()) {
    const std::string momentum =
        group == "matrices" ? "\nmomentum_warmup_steps = 300\nmomentum_cooldown_steps = 200" : "";
    expect_rates(fixture, "sota", group, "powercool",
                 fmt::format("coefficient = {:.17g}\npower = 1.2", coefficient.get<double>()) + momentum);
  }
}

// The bounds travel as f32.
TEST(ArenaScheduleGolden, TrustBounds) {
  const GoldenFixture fixture("arena-schedule");
  const plugin_test::OptimizerRunner runner("soap_muon", "trust = true",
                                            {{"w", TensorType(MLG_F32, {2, 2})}});
  const std::vector<std::int32_t> steps = fixture.ints("sota.step");
  const std::vector<double> floors = fixture.doubles("sota.trust_floor"),
                            caps = fixture.doubles("sota.trust_cap");
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const std::vector<float> scalars = runner.scalars(steps[i] + 1, 0.01);  // counts the coming update
    EXPECT_EQ(scalars.at(3), steps[i] == 0 ? 1.0f : 0.0f);
    EXPECT_EQ(scalars.at(4), static_cast<float>(floors[i])) << "step " << steps[i];
    EXPECT_EQ(scalars.at(5), static_cast<float>(caps[i])) << "step " << steps[i];
  }
}

}  // namespace
}  // namespace mulligan::arena_schedule_golden_test
