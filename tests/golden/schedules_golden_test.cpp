// Schedules against the public reference, through the built plugins. Tolerance 1e-12 (float64).
// muon_momentum.* is a matter of the optimiser plugin muon and global_ttt_lr.* of the plugin global_sgd; both
// are tested with them.
#include <gtest/gtest.h>

#include <cmath>

#include "framework/plugin/schedule.h"
#include "tests/golden/golden_fixture.h"
#include "tests/support/plugins.h"

namespace mulligan::schedules_golden_test {
namespace {

constexpr double kTolerance = 1e-12;

std::unique_ptr<Schedule> make_schedule(const std::string& name, const std::string& toml) {
  return make_plugin<Schedule>(MLG_SCHEDULE, name, toml);
}

struct SgdrCase {
  std::string name;
  double base_lr, period;
  std::unique_ptr<Schedule> by_step, by_epoch;
};

std::vector<SgdrCase> sgdr_cases(const GoldenFixture& fixture) {
  std::vector<SgdrCase> cases;
  for (const auto& [name, info] : fixture.manifest().at("info").items()) {
    if (!name.starts_with("sgdr.")) continue;
    const double period = info.at("T_0");
    const std::string keys =
        fmt::format("period = {:.17g}\nperiod_multiplier = {:.17g}\neta_min = {:.17g}\n", period,
                    info.at("T_mult").get<double>(), info.at("eta_min").get<double>());
    cases.push_back({name, info.at("base_lr"), period, make_schedule("sgdr", keys + "by = 'step'"),
                     make_schedule("sgdr", keys + "by = 'epoch'")});
  }
  return cases;
}

TEST(SchedulesGolden, SgdrAtWholeSteps) {
  const GoldenFixture fixture("schedules");
  const auto cases = sgdr_cases(fixture);
  ASSERT_EQ(cases.size(), 3u);
  for (const SgdrCase& c : cases) {
    const auto lr = fixture.doubles(c.name + ".lr"), into_cycle = fixture.doubles(c.name + ".T_cur");
    ASSERT_FALSE(lr.empty());
    std::int64_t cycle = -1;
    for (std::size_t i = 0; i < lr.size(); ++i) {
      if (into_cycle[i] == 0) ++cycle;
      const mlg_rate rate = c.by_step->rate({static_cast<std::int64_t>(i), 0, 0, 0}, c.base_lr);
      EXPECT_NEAR(rate.lr, lr[i], kTolerance) << c.name << " step " << i;
      EXPECT_EQ(rate.cycle, cycle) << c.name << " step " << i;
    }
    EXPECT_GT(cycle, 1) << "the fixture holds restarts";
  }
}

TEST(SchedulesGolden, SgdrAtFractionalEpochs) {
  const GoldenFixture fixture("schedules");
  for (const SgdrCase& c : sgdr_cases(fixture)) {
    const auto epochs = fixture.doubles(c.name + ".frac_epochs"), lr = fixture.doubles(c.name + ".frac_lr");
    ASSERT_EQ(epochs.size(), lr.size());
    for (std::size_t i = 0; i < lr.size(); ++i) {
      EXPECT_NEAR(c.by_epoch->rate({0, 0, 0, epochs[i]}, c.base_lr).lr, lr[i], kTolerance)
          << c.name << " epoch " << epochs[i];
    }
  }
}

TEST(SchedulesGolden, WarmdownMultiplier) {
  const GoldenFixture fixture("schedules");
  std::size_t cases = 0;
  for (const std::string& name : fixture.names()) {
    double fraction = 0, floor = 0;  // the fixture's settings are in the tensor's name only
    if (std::sscanf(name.c_str(), "lr_mul.wf%lf_min%lf", &fraction, &floor) != 2) continue;
    ++cases;
    const auto expected = fixture.doubles(name);
    const auto steps = static_cast<std::int64_t>(expected.size()) - 1;
    const std::string keys = fmt::format("fraction = {:.17g}\nmin_factor = {:.17g}\n", fraction, floor);
    const auto by_budget = make_schedule("warmdown", keys + "by = 'budget'");
    const auto by_step = make_schedule("warmdown", keys + "by = 'step'");
    for (std::int64_t i = 0; i <= steps; ++i) {
      const double done = static_cast<double>(i) / static_cast<double>(steps);
      EXPECT_NEAR(by_budget->rate({0, 0, done, 0}, 1.0).lr, expected[i], kTolerance)
          << name << " at " << done;
      EXPECT_NEAR(by_step->rate({i, steps, 0, 0}, 1.0).lr, expected[i], kTolerance) << name << " step " << i;
    }
  }
  EXPECT_EQ(cases, 3u);
}

}  // namespace
}  // namespace mulligan::schedules_golden_test
