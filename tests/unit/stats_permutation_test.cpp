// Permutation tests against counts on paper, bootstrap intervals against what they promise.
#include "tools/stats/resampling.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "framework/core/philox.h"

namespace mulligan::stats::stats_permutation_test {
namespace {

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
    EXPECT_DOUBLE_EQ(signs.greater, pairs / 2);
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
  EXPECT_DOUBLE_EQ(signs.greater, 3.0 / 8);
  EXPECT_DOUBLE_EQ(signs.two_sided, 6.0 / 8);
  // {1, 4} against {2}: differences of means over the three deals 0.5, 1.5 ({2, 4} against 1), -2.5.
  const PermutationTest shuffle = shuffle_test(std::vector<double>{1, 4}, std::vector<double>{2});
  EXPECT_EQ(shuffle.arrangements, 3u);
  EXPECT_DOUBLE_EQ(shuffle.greater, 2.0 / 3);
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
  EXPECT_DOUBLE_EQ(shuffle_test(c, b).greater, 1.0 / 100'001);
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
  const Bootstrap result = bootstrap(values);
  const Interval t = t_interval(values);
  for (const Interval& interval : {result.percentile, result.bca}) {
    EXPECT_NEAR(interval.low, t.low, 0.01);
    EXPECT_NEAR(interval.high, t.high, 0.01);
  }
}

// The mean of a skewed sample: the corrected interval moves towards the long tail.
TEST(Bootstrap, AccelerationFollowsTheSkew) {
  const Bootstrap result = bootstrap(std::vector<double>{1, 1, 1, 2, 2, 3, 4, 9, 20});
  EXPECT_GT(result.bca.low, result.percentile.low);
  EXPECT_GT(result.bca.high, result.percentile.high);
}

TEST(Bootstrap, ValuesThatDoNotVaryHaveAPoint) {
  const Bootstrap result = bootstrap(std::vector<double>{2, 2, 2});
  EXPECT_EQ(result.bca.low, 2);
  EXPECT_EQ(result.bca.high, 2);
}

TEST(Bootstrap, IsRepeatable) {
  const std::vector<double> values = normals(5, 10, 0);
  EXPECT_EQ(bootstrap(values).bca.low, bootstrap(values).bca.low);
}

}  // namespace
}  // namespace mulligan::stats::stats_permutation_test
