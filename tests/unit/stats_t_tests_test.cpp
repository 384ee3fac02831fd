// Tests and intervals against tables and computed examples.
#include "tools/stats/t_tests.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "framework/core/philox.h"
#include "tools/stats/resampling.h"

namespace mulligan::stats::stats_t_tests_test {
namespace {

TEST(TTests, TheDistributionAgreesWithTables) {
  EXPECT_NEAR(1 - t_cdf(6.965, 2), 0.0100, 5e-6);
  EXPECT_NEAR(1 - t_cdf(3.747, 4), 0.0100, 5e-6);
  EXPECT_NEAR(1 - t_cdf(2.718, 11), 0.0100, 5e-6);
  EXPECT_NEAR(t_quantile(0.975, 2), 4.302653, 1e-6);
  EXPECT_EQ(t_cdf(std::numeric_limits<double>::infinity(), 3), 1);
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
  EXPECT_THROW(paired_test(two, one), std::invalid_argument);
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

std::vector<double> normals(std::uint64_t seed, std::size_t count, double mean) {
  const PhiloxStream random(seed, "stats/test");
  std::vector<double> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(mean + random.normal(i));
  return values;
}

std::vector<double> ramp(std::size_t n, double from) {
  std::vector<double> values;
  for (std::size_t i = 0; i < n; ++i) values.push_back(from + static_cast<double>(i));
  return values;
}

TEST(Permutation, TheSmallestPOfFewRunsIsSaid) {
  for (const auto& [n, pairs, deals] : {std::tuple{3, 0.25, 0.10},
                                        {4, 0.125, 2.0 / 70},
                                        {5, 0.0625, 2.0 / 252},
                                        {8, 0.0078125, 2.0 / 12870}}) {
    const auto size = static_cast<std::size_t>(n);
    const std::vector<double> high = ramp(size, 100), low = ramp(size, 0);
    const PermutationTest signs = sign_flip_test(high, low);
    EXPECT_DOUBLE_EQ(signs.least_two_sided, pairs);
    EXPECT_DOUBLE_EQ(signs.two_sided, pairs);  // all differences have one sign: nothing is more extreme
    const PermutationTest shuffle = shuffle_test(high, low);
    EXPECT_NEAR(shuffle.least_two_sided, deals, 1e-12);
    EXPECT_NEAR(shuffle.two_sided, deals, 1e-12);
    EXPECT_TRUE(shuffle.exact);
  }
}

TEST(Permutation, CountsByHand) {
  // Differences 1, 2, -1: sums of all signs are +-4, +-2 (three ways), 0 (two ways of 1 - 2 + 1).
  const PermutationTest signs = sign_flip_test(std::vector<double>{1, 2, 0}, std::vector<double>{0, 0, 1});
  EXPECT_EQ(signs.arrangements, 8u);
  EXPECT_DOUBLE_EQ(signs.two_sided, 6.0 / 8);
  // {1, 4} against {2}: differences of means over the three deals 0.5, 1.5 ({2, 4} against 1), -2.5.
  const PermutationTest shuffle = shuffle_test(std::vector<double>{1, 4}, std::vector<double>{2});
  EXPECT_EQ(shuffle.arrangements, 3u);
  EXPECT_DOUBLE_EQ(shuffle.two_sided, 1.0);
  EXPECT_DOUBLE_EQ(shuffle.least_two_sided, 1.0 / 3);
}

TEST(Permutation, ManyPairsAreDrawn) {
  const std::vector<double> a = normals(1, 40, 0.0), b = normals(2, 40, 0.0), c = normals(3, 40, 3.0);
  const PermutationTest same = sign_flip_test(a, b);
  EXPECT_FALSE(same.exact);
  EXPECT_NEAR(same.two_sided, paired_test(a, b).two_sided, 0.005);  // of normal values nearly the t test
  const PermutationTest other = sign_flip_test(c, b);
  EXPECT_DOUBLE_EQ(other.two_sided, 1.0 / 100'001);
  EXPECT_DOUBLE_EQ(other.two_sided, other.least_two_sided);
  EXPECT_DOUBLE_EQ(shuffle_test(c, b).two_sided, 1.0 / 100'001);
  EXPECT_NEAR(shuffle_test(a, b).two_sided, welch_test(a, b).two_sided, 0.005);
}

TEST(Permutation, NothingToPermuteIsRefused) {
  const std::vector<double> none, one = {1}, two = {1, 2};
  EXPECT_THROW(sign_flip_test(one, two), std::invalid_argument);
  EXPECT_THROW(sign_flip_test(none, none), std::invalid_argument);
  EXPECT_THROW(shuffle_test(one, none), std::invalid_argument);
}

TEST(Bootstrap, OfManyNormalValuesIsTheNormalInterval) {
  const std::vector<double> values = normals(4, 400, 10);
  const Interval result = bootstrap(values), t = t_interval(values);
  EXPECT_NEAR(result.low, t.low, 0.01);
  EXPECT_NEAR(result.high, t.high, 0.01);
}

// The interval of a skewed sample is longer towards the long tail.
TEST(Bootstrap, AccelerationFollowsTheSkew) {
  const std::vector<double> values = {1, 1, 1, 2, 2, 3, 4, 9, 20};
  const Interval result = bootstrap(values);
  const double mean = 43.0 / 9;
  EXPECT_GT(result.high - mean, 1.8 * (mean - result.low));  // of the percentiles it is 1.4 times as long
}

TEST(Bootstrap, ValuesThatDoNotVaryHaveAPoint) {
  const Interval result = bootstrap(std::vector<double>{2, 2, 2});
  EXPECT_EQ(result.low, 2);
  EXPECT_EQ(result.high, 2);
}

}  // namespace
}  // namespace mulligan::stats::stats_t_tests_test
