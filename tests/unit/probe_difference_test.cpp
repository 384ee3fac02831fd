// Differences of logits and of texts, computed on paper: the scale, flips, and the first place where texts differ.
#include "lab/probe/difference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

namespace mulligan::probe::probe_difference_test {
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

TEST(ProbeDivergence, CountsATextThatDoesNotDivergeWithItsLength) {
  const Divergence d =
      compare_texts({{1, 2, 3, 4}, {1, 2, 3, 4}, {1, 2, 3, 4}}, {{1, 2, 3, 4}, {1, 9, 3, 4}, {1, 2, 3, 9}});
  EXPECT_EQ(d.texts, 3);
  EXPECT_EQ(d.diverged, 2);
  EXPECT_DOUBLE_EQ(d.mean_index, (4 + 1 + 3) / 3.0);
}

Measurement measurement(const std::string& precision, const std::string& setting, std::vector<float> shifts) {
  Measurement made;
  made.precision = precision;
  made.setting = setting;
  made.vocabulary = 2;
  made.weight_bytes = 1000;
  std::int64_t batch = 1;
  for (const float shift : shifts) {
    made.batches.push_back({batch, {1 + shift, -1}, {{7, shift == 0 ? 8 : 9}}});
    batch += 2;
  }
  return made;
}

TEST(ProbeComparisons, HoldBatchesSettingsAndPrecisionsAgainstTheirOwnReference) {
  const std::vector<Measurement> measured = {measurement("fp32", "", {0, 0}),
                                             measurement("bf16", "", {0.5f, 1}),
                                             measurement("fp32", "run.fused_kernels=false", {0.25f}),
                                             measurement("bf16", "run.fused_kernels=false", {1})};
  const std::vector<Comparison> found = comparisons(measured);
  std::vector<std::string> what;
  for (const Comparison& one : found) what.push_back(measured[one.measurement].precision + ": " + one.what);
  EXPECT_EQ(what,
            (std::vector<std::string>{"fp32: batch 3 to batch 1", "bf16: batch 3 to batch 1", "bf16: to fp32",
                                      "fp32: run.fused_kernels=false", "bf16: run.fused_kernels=false"}));
  const double rms_of_bf16 = std::sqrt((1.5 * 1.5 + 1) / 2);
  EXPECT_EQ(found[0].logits.largest_over_rms, 0);
  EXPECT_DOUBLE_EQ(found[1].logits.largest_over_rms, 0.5 / rms_of_bf16);
  EXPECT_DOUBLE_EQ(found[2].logits.largest_over_rms, 0.5) << "the rms of fp32 is 1";
  EXPECT_DOUBLE_EQ(found[3].logits.largest_over_rms, 0.25);
  EXPECT_DOUBLE_EQ(found[4].logits.largest_over_rms, 0.5 / rms_of_bf16) << "to bf16 without the setting";
  EXPECT_EQ(found[2].texts.mean_index, 1);
}

TEST(ProbeMarkdown, GivesMeanAndDeviationOverRuns) {
  ProbeOptions options;
  options.sequences = 1;
  options.length = 1;
  options.tokens = 2;
  const std::string text =
      probe_markdown({{measurement("fp32", "", {0, 0.1f})}, {measurement("fp32", "", {0, 0.3f})}}, options);
  EXPECT_NE(text.find("n = 2 runs"), std::string::npos);
  EXPECT_NE(text.find("| fp32 | | | | | 1,000 | - | - |"), std::string::npos) << text;
  EXPECT_NE(text.find("| fp32 | batch 3 to batch 1 | 2.0e-01 ± 1.4e-01 | 0.00 | 1.0 | | | |"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace mulligan::probe::probe_difference_test
