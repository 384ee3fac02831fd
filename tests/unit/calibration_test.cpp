// Calibration and consistency: figures that were computed on paper.
#include "lab/calibration/calibration.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

namespace mulligan::calibration::calibration_test {
namespace {

const std::vector<Prediction> oracle = {{.95, true, 0}, {.85, false, 0}, {.65, true, 0}, {.55, false, 0}};

// Four predictions in ten bins: |1 - .95|, |0 - .85|, |1 - .65| and |0 - .55|, a quarter of each.
TEST(Calibration, Oracle) {
  const Calibration c = measure_calibration(oracle, 10);
  EXPECT_NEAR(c.ece, .45, 1e-12);
  EXPECT_NEAR(c.mce, .85, 1e-12);
  EXPECT_NEAR(c.brier, .2875, 1e-12);
  EXPECT_NEAR(c.swagger.value(), .70, 1e-12);
  EXPECT_NEAR(c.swagger_gap.value(), -.10, 1e-12);
  EXPECT_EQ(c.count, 4U);
  EXPECT_EQ(c.wrong, 2U);
  EXPECT_EQ(c.accuracy, .5);
  EXPECT_NEAR(c.confidence, .75, 1e-12);
  EXPECT_EQ(c.bins.size(), 10U);
}

// Two in each bin of equal mass: |.5 - .6| and |.5 - .9|, half of each.
TEST(Calibration, BinsOfEqualMass) {
  const Calibration c = measure_calibration(oracle, 2);
  EXPECT_NEAR(c.adaptive_ece, (.1 + .4) / 2, 1e-12);
  EXPECT_EQ(c.adaptive_bins[0].count, 2U);
  EXPECT_EQ(c.adaptive_bins[0].high, .65);
  EXPECT_EQ(measure_calibration(oracle, 15).adaptive_bins.size(), 4U);  // no more bins than predictions
  std::vector<Prediction> backwards(oracle.rbegin(), oracle.rend());
  EXPECT_EQ(measure_calibration(backwards, 2).adaptive_ece, c.adaptive_ece);
}

// (0, 0.1] holds 0.1, whatever 0.1 * 10 rounds to; 0 goes into the first and 1 into the last.
TEST(Calibration, EdgesBelongToTheBinBelow) {
  for (const int bins : {1, 3, 7, 10, 15}) {
    std::vector<Prediction> edges = {{0, true, 0}};
    for (int i = 1; i <= bins; ++i) edges.push_back({static_cast<double>(i) / bins, true, 0});
    const Calibration c = measure_calibration(edges, bins);
    EXPECT_EQ(c.bins[0].count, 2U);
    for (std::size_t i = 1; i < c.bins.size(); ++i) EXPECT_EQ(c.bins[i].count, 1U) << bins << " " << i;
  }
}

TEST(Calibration, NoWrongAnswersHaveNoSwagger) {
  const Calibration right = measure_calibration(std::vector<Prediction>{{.9, true, .1}, {.8, true, .3}});
  EXPECT_FALSE(right.swagger || right.swagger_gap);
  EXPECT_EQ(right.wrong, 0U);
  EXPECT_NEAR(right.loss_nats, .2, 1e-12);
  const Calibration wrong = measure_calibration(std::vector<Prediction>{{.9, false, 3}});
  EXPECT_EQ(wrong.swagger, .9);
  EXPECT_FALSE(wrong.swagger_gap);
}

TEST(Calibration, WhatIsNoPredictionIsRefused) {
  EXPECT_THROW(measure_calibration({}), std::invalid_argument);
  EXPECT_THROW(measure_calibration(oracle, 0), std::invalid_argument);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double confidence : {-.1, 1.1, nan}) {
    EXPECT_THROW(measure_calibration(std::vector<Prediction>{{confidence, true, 0}}), std::invalid_argument);
  }
}

TEST(Calibration, TheChoiceOfLogits) {
  const std::vector<double> logits = {std::log(.2), std::log(.5), std::log(.3)};
  const Choice right = choose(logits, 1), wrong = choose(logits, 2);
  EXPECT_EQ(right.choice, 1U);
  EXPECT_TRUE(right.prediction.right);
  EXPECT_NEAR(right.prediction.confidence, .5, 1e-12);
  EXPECT_NEAR(right.prediction.loss_nats, -std::log(.5), 1e-12);
  EXPECT_FALSE(wrong.prediction.right);
  EXPECT_NEAR(wrong.prediction.loss_nats, -std::log(.3), 1e-12);
  const std::vector<float> far = {-3e4F, 3e4F};  // where exp() would overflow
  EXPECT_EQ(choose(far, 0).prediction.confidence, 1);
  EXPECT_EQ(choose(far, 0).prediction.loss_nats, 6e4);
  const std::vector<float> equal = {1, 1, 1, 1};
  EXPECT_EQ(choose(equal, 3).choice, 0U);
  EXPECT_EQ(choose(equal, 3).prediction.confidence, .25);
  EXPECT_THROW(choose(std::vector<float>{1, std::numeric_limits<float>::quiet_NaN()}, 0),
               std::invalid_argument);
}

// Three runs on four items: all agree, two of three, none, all.
TEST(Consistency, ByHand) {
  const std::vector<std::vector<int>> answers = {{1, 2, 3, 4}, {1, 2, 5, 4}, {1, 9, 7, 4}};
  const Consistency c = consistency_of(answers);
  EXPECT_NEAR(c.mean_most_common, (1 + 2. / 3 + 1. / 3 + 1) / 4, 1e-12);
  EXPECT_NEAR(c.pairwise, (3 + 1 + 0 + 3) / 3. / 4, 1e-12);
  EXPECT_EQ(c.first_divergence, 1U);
  EXPECT_FALSE(consistency_of(std::vector<std::vector<int>>{{1, 2}, {1, 2}}).first_divergence);
  EXPECT_THROW(consistency_of(std::vector<std::vector<int>>{{1}}), std::invalid_argument);
  EXPECT_THROW(consistency_of(std::vector<std::vector<int>>{{1, 2}, {1}}), std::invalid_argument);
  EXPECT_THROW(consistency_of(std::vector<std::vector<int>>{{}, {}}), std::invalid_argument);
}

// Only an item that is consistent, sure and of a badly calibrated domain is flagged; limits are inclusive.
TEST(Consistency, Risks) {
  const std::vector<double> consistency = {1, .8, .7, 1, 1}, confidence = {.9, .8, .9, .7, .9},
                            ece = {.2, .1, .2, .2, .05};
  const std::vector<bool> wrong = {true, false, true, true, false};
  const Risks risks = find_risks(consistency, confidence, ece, wrong);
  EXPECT_EQ(risks.items, (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(risks.precision, .5);
  EXPECT_NEAR(risks.recall.value(), 1. / 3, 1e-12);
  EXPECT_FALSE(find_risks(consistency, confidence, ece, wrong, {1, 1, 1}).precision);
  EXPECT_FALSE(
      find_risks(std::vector<double>{1}, std::vector<double>{1}, std::vector<double>{1}, {false}).recall);
  EXPECT_THROW(find_risks(consistency, confidence, ece, {true}), std::invalid_argument);
}

}  // namespace
}  // namespace mulligan::calibration::calibration_test
