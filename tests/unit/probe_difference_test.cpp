// Differences of logits and of texts by hand: the scale, flips, and the first place where texts differ.
#include "framework/probe/difference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

namespace mulligan::probe {
namespace {

TEST(ProbeDifference, IsTheLargestOverTheReferencesRootMeanSquare) {
  const std::vector<float> reference = {3, -1, 2, 1, 1, -4}, other = {3, -1, 2.5f, 1, 1.25f, -4};
  const LogitDifference d = compare_logits(reference, other, 3);
  EXPECT_DOUBLE_EQ(d.largest_over_rms, 0.5 / std::sqrt((9 + 1 + 4 + 1 + 1 + 16) / 6.0));
  EXPECT_EQ(d.rows, 2);
  EXPECT_EQ(d.flips, 1) << "of equal logits the lower token counts: row two goes from token 0 to 1";
}

TEST(ProbeDifference, OfTheSameBitsIsZeroEvenWithoutAScale) {
  const std::vector<float> zeros(6, 0.0f);
  EXPECT_EQ(compare_logits(zeros, zeros, 2).largest_over_rms, 0);
  EXPECT_EQ(compare_logits({}, {}, 2).rows, 0);
}

TEST(ProbeDifference, OfANumberAndNoNumberIsInfinite) {
  const std::vector<float> reference = {1, 2}, broken = {1, std::numeric_limits<float>::quiet_NaN()};
  EXPECT_TRUE(std::isinf(compare_logits(reference, broken, 2).largest_over_rms));
}

TEST(ProbeDifference, RefusesSizesThatDoNotFit) {
  const std::vector<float> four(4), six(6);
  EXPECT_THROW(compare_logits(four, six, 2), std::logic_error);
  EXPECT_THROW(compare_logits(six, six, 4), std::logic_error);
  EXPECT_THROW(compare_texts({{1}}, {}), std::logic_error);
}

TEST(ProbeDivergence, IsTheFirstPlaceThatDiffers) {
  const std::vector<std::int32_t> a = {4, 5, 6, 7}, b = {4, 5, 9, 7};
  EXPECT_EQ(divergence_index(a, b), 2);
  EXPECT_EQ(divergence_index(a, a), std::nullopt);
  EXPECT_EQ(divergence_index(a, {}), 0);
}

TEST(ProbeDivergence, CountsATextThatDoesNotDivergeWithItsLength) {
  const Divergence d =
      compare_texts({{1, 2, 3, 4}, {1, 2, 3, 4}, {1, 2, 3, 4}}, {{1, 2, 3, 4}, {1, 9, 3, 4}, {1, 2, 3, 9}});
  EXPECT_EQ(d.texts, 3);
  EXPECT_EQ(d.diverged, 2);
  EXPECT_EQ(d.earliest, 1);
  EXPECT_DOUBLE_EQ(d.mean_index, (4 + 1 + 3) / 3.0);
  EXPECT_EQ(compare_texts({{1}}, {{1}}).earliest, std::nullopt);
}

}  // namespace
}  // namespace mulligan::probe
