// Families of tests, agreement counts, effect sizes and power against published numbers and counts on paper.
#include "tools/stats/t_tests.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <vector>

namespace mulligan::stats::stats_many_tests_test {
namespace {

TEST(ManyTests, McNemarIsTheSignTestOfDiscordantItems) {
  EXPECT_DOUBLE_EQ(mcnemar_test(0, 0), 1);
  EXPECT_DOUBLE_EQ(mcnemar_test(5, 5), 1);
  EXPECT_DOUBLE_EQ(mcnemar_test(0, 5), 2.0 / 32);
  EXPECT_DOUBLE_EQ(mcnemar_test(5, 0), 2.0 / 32);
  EXPECT_DOUBLE_EQ(mcnemar_test(1, 7), 2.0 * 9 / 256);
  EXPECT_DOUBLE_EQ(mcnemar_test(0, 3), 0.25);  // three questions of 200 prove nothing
}

TEST(ManyTests, HolmStepsDown) {
  const std::vector<double> adjusted = holm(std::vector<double>{0.01, 0.04, 0.03, 0.005});
  EXPECT_DOUBLE_EQ(adjusted[3], 0.02);
  EXPECT_DOUBLE_EQ(adjusted[0], 0.03);
  EXPECT_DOUBLE_EQ(adjusted[2], 0.06);
  EXPECT_DOUBLE_EQ(adjusted[1], 0.06);  // never below a smaller p's
  EXPECT_DOUBLE_EQ(holm(std::vector<double>{0.9, 0.8})[0], 1);
  EXPECT_TRUE(holm({}).empty());
}

TEST(ManyTests, HedgesCorrectsSmallSamples) {
  const std::vector<double> a = {2, 4, 6}, b = {1, 3, 5};
  EXPECT_NEAR(hedges_g(a, b), 0.5 * (1 - 3.0 / 15), 1e-12);
  EXPECT_TRUE(std::isinf(hedges_g(std::vector<double>{2, 2}, std::vector<double>{1, 1})));
  EXPECT_EQ(hedges_g(std::vector<double>{2, 2}, std::vector<double>{2, 2}), 0);
}

// G*Power's and R's power.t.test's sizes of both groups for 80 % at 5 %, two-sided.
TEST(ManyTests, RunsForPowerAreThoseOfTables) {
  EXPECT_EQ(runs_for_power(0.2), 394u);
  EXPECT_EQ(runs_for_power(0.5), 64u);
  EXPECT_EQ(runs_for_power(-0.8), 26u);
  EXPECT_EQ(runs_for_power(2.0), 6u);
  EXPECT_EQ(runs_for_power(0.001), 0u);
  EXPECT_THROW(runs_for_power(0), std::invalid_argument);
}

}  // namespace
}  // namespace mulligan::stats::stats_many_tests_test
