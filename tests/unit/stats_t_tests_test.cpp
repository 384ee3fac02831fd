// Student's t: tables, worked examples, and what intervals and tests promise, over simulated samples.
#include "tools/stats/t_tests.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "framework/core/philox.h"

namespace mulligan::stats::stats_t_tests_test {
namespace {

const std::vector<double> pr1768 = {1.07146, 1.07014, 1.07082};
const std::vector<double> pr1886 = {1.07010, 1.06920, 1.06942};

TEST(TTests, TheDistributionAgreesWithTables) {
  EXPECT_NEAR(1 - t_cdf(6.965, 2), 0.0100, 5e-6);
  EXPECT_NEAR(1 - t_cdf(3.747, 4), 0.0100, 5e-6);
  EXPECT_NEAR(1 - t_cdf(2.718, 11), 0.0100, 5e-6);
  EXPECT_NEAR(t_quantile(0.975, 2), 4.302653, 1e-6);
  EXPECT_EQ(t_cdf(std::numeric_limits<double>::infinity(), 3), 1);
}

TEST(TTests, WelchOfTwoPublishedRecords) {
  const TTest test = welch_test(pr1768, pr1886);
  EXPECT_NEAR(test.difference, 0.001233, 5e-7);
  EXPECT_NEAR(test.t, 2.64, 0.005);
  EXPECT_NEAR(test.degrees, 3.61, 0.005);
  EXPECT_NEAR(test.greater, 0.032, 0.0005);
}

TEST(TTests, PairedTestOfTwoPublishedRecords) {
  const TTest test = paired_test(pr1768, pr1886);
  EXPECT_NEAR(test.t, 8.38, 0.005);
  EXPECT_EQ(test.degrees, 2);
  EXPECT_NEAR(test.greater, 0.0070, 0.00005);
}

TEST(TTests, SamplesThatDoNotVaryAreBeyondDoubt) {
  const std::vector<double> two = {2, 2, 2}, one = {1, 1, 1};
  const TTest test = welch_test(two, one);
  EXPECT_TRUE(std::isinf(test.t));
  EXPECT_EQ(test.greater, 0);
  EXPECT_EQ(welch_test(two, two).two_sided, 1);
}

TEST(TTests, TooFewValuesAreRefused) {
  const std::vector<double> one = {1}, two = {1, 2};
  EXPECT_THROW(t_interval(one), std::invalid_argument);
  EXPECT_THROW(welch_test(one, two), std::invalid_argument);
  EXPECT_THROW(paired_test(pr1768, two), std::invalid_argument);
  EXPECT_THROW(t_interval(two, 1.0), std::invalid_argument);
}

TEST(TTests, EquivalenceNeedsBothSides) {
  const TTest near =
      welch_test(std::vector<double>{1.000, 1.001, 1.002}, std::vector<double>{1.001, 1.002, 1.000});
  EXPECT_LT(equivalence_test(near, 0.005), 0.01);
  EXPECT_GT(equivalence_test(near, 0.0005), 0.05);
  const TTest far =
      welch_test(std::vector<double>{1.010, 1.011, 1.012}, std::vector<double>{1.001, 1.002, 1.000});
  EXPECT_GT(equivalence_test(far, 0.005), 0.9);
}

// 2,000 samples of 5 normal values: a 95 % interval misses the mean in 5 % of them, a test at 5 % errs as often.
TEST(TTests, CoverageAndFalseAlarmsAreWhatTheyPromise) {
  const PhiloxStream random(20, "stats/test");
  constexpr int simulations = 2000;
  constexpr std::size_t n = 5;
  int covered = 0, alarms = 0, paired_alarms = 0;
  for (int s = 0; s < simulations; ++s) {
    std::vector<double> a(n), b(n);
    for (std::size_t i = 0; i < n; ++i) {
      const auto at = (static_cast<std::uint64_t>(s) * n + i) * 2;
      a[i] = 3 + random.normal(at);
      b[i] = 3 + random.normal(at + 1);
    }
    const Interval interval = t_interval(a);
    covered += interval.low <= 3 && 3 <= interval.high;
    alarms += welch_test(a, b).two_sided < 0.05;
    paired_alarms += paired_test(a, b).two_sided < 0.05;
  }
  EXPECT_NEAR(covered, 0.95 * simulations, 0.01 * simulations);
  EXPECT_NEAR(alarms, 0.05 * simulations, 0.01 * simulations);
  EXPECT_NEAR(paired_alarms, 0.05 * simulations, 0.01 * simulations);
}

}  // namespace
}  // namespace mulligan::stats::stats_t_tests_test
