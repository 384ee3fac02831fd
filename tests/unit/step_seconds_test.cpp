// The training budget that phases count by their steps.
#include "framework/step/phase_progress.h"

#include <gtest/gtest.h>

#include "tests/unit/config_testing.h"

namespace mulligan::step_seconds_test {
namespace {

// As pull request 1886 ran: 97.5 ms a step, then with depth recurrence 143.5.
RunConfig record() {
  RunConfig config;
  config.train.budget_seconds = 600;
  config.train.reserve_seconds = 0.5;
  Phase plain, looped;
  plain.until.fraction = 0.35;
  plain.step_seconds = 0.0975;
  looped.step_seconds = 0.1435;
  config.phases = {plain, looped};
  return config;
}

TEST(StepSeconds, ARunIsAsLongAsItsStepsSay) {
  StepSeconds counted(record());
  // Its author's seeds made 4,864, 4,868 and 4,866 steps.
  EXPECT_EQ(counted.phase_steps(),
            (std::vector<std::int64_t>{2153, 2715}));  // 0.35 * 599.5 / 0.0975 = 2152.05
  EXPECT_EQ(counted.total_steps(), 4868);
  EXPECT_DOUBLE_EQ(counted.seconds(2153), 2153 * 0.0975);
  EXPECT_DOUBLE_EQ(counted.seconds(2155), 2153 * 0.0975 + 2 * 0.1435);
  EXPECT_DOUBLE_EQ(counted.fraction(2155), (2153 * 0.0975 + 2 * 0.1435) / 599.5);
  EXPECT_DOUBLE_EQ(counted.seconds(10), 10 * 0.0975);  // an earlier point again
  EXPECT_FALSE(counted.ended(4867));
  EXPECT_TRUE(counted.ended(4868));
}

TEST(StepSeconds, StepsAreALimitToo) {
  RunConfig config = record();
  config.train.steps = 100;
  const StepSeconds counted(config);
  EXPECT_EQ(counted.total_steps(), 100);
  EXPECT_EQ(counted.phase_steps(), (std::vector<std::int64_t>{100, 0}));
}

TEST(StepSeconds, AShareThatIsHeldThroughIsPassed) {
  RunConfig config = record();
  config.train.budget_seconds = 10.5;
  config.phases[0].until = {0, 0, 0, 0.5};
  config.phases[0].step_seconds = config.phases[1].step_seconds = 1;
  EXPECT_EQ(StepSeconds(config).phase_steps(),
            (std::vector<std::int64_t>{6, 4}));  // 5 of 10 are not more than half
}

TEST(StepSeconds, AreOfAllPhasesAndOfABudget) {
  const auto refusal = [](const std::string& first, const std::string& second,
                          const std::vector<std::string>& sets) {
    return error_of([&] {
      small_config(sets, "[[phase]]\nname = \"a\"\nuntil_steps = 5\n" + first +
                             "\n[[phase]]\nname = \"b\"\n" + second);
    });
  };
  const std::vector<std::string> budget = {"train.budget_seconds=60"};
  EXPECT_TRUE(contains(refusal("step_seconds = 1", "", budget), "the phase 'b' has no step_seconds"));
  EXPECT_TRUE(contains(refusal("step_seconds = 1", "step_seconds = 2", {}), "set train.budget_seconds"));
  EXPECT_TRUE(contains(refusal("step_seconds = 1e-7", "step_seconds = 2", budget), "raise it"));
  const LoadedConfig counted =
      small_config(budget, "[[phase]]\nuntil_steps = 5\nstep_seconds = 1\n[[phase]]\nstep_seconds = 0.5\n");
  EXPECT_TRUE(StepSeconds::counts(counted.config));
  EXPECT_FALSE(StepSeconds::counts(small_config(budget).config));
}

}  // namespace
}  // namespace mulligan::step_seconds_test
