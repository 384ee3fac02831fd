// The mixed model against what is known: of balanced designs it is the analysis of variance with repeated measures.
#include "tools/stats/mixed_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

#include "framework/core/philox.h"
#include "tools/stats/t_tests.h"

namespace mulligan::stats::stats_mixed_model_test {
namespace {

// `seeds` seeds, each measured under `conditions` conditions: y = condition + intercept of the seed + noise.
MixedData repeated_measures(std::size_t seeds, std::size_t conditions, double intercepts) {
  const PhiloxStream random(7, "stats/test");
  MixedData data;
  std::vector<std::vector<std::string>> levels;
  for (std::size_t s = 0; s < seeds; ++s) {
    const double u = intercepts * random.normal(1000 + s);
    for (std::size_t c = 0; c < conditions; ++c) {
      data.y.push_back(0.5 * static_cast<double>(c) + u + 0.3 * random.normal(s * conditions + c));
      data.group.push_back(s);
      levels.push_back({std::to_string(c)});
    }
  }
  data.x = treatment_design({"condition"}, levels, false).x;
  return data;
}

TEST(MixedModel, OfTwoConditionsIsThePairedTest) {
  const MixedData data = repeated_measures(8, 2, 2.0);
  std::vector<double> first, second;
  for (std::size_t i = 0; i < data.y.size(); i += 2) {
    first.push_back(data.y[i]);
    second.push_back(data.y[i + 1]);
  }
  const TTest paired = paired_test(second, first);
  const MixedModel model = fit_mixed_model(data);
  EXPECT_NEAR(model.coefficients[1].estimate, paired.difference, 1e-10);
  EXPECT_NEAR(model.coefficients[1].standard_error, paired.standard_error, 1e-9 * paired.standard_error);
  EXPECT_NEAR(model.coefficients[1].degrees, 7, 0.01);
  EXPECT_NEAR(model.coefficients[1].two_sided, paired.two_sided, 1e-3 * paired.two_sided);
}

// Variances of a balanced design by mean squares: noise = MS of the interaction, intercepts = (MS of seeds - noise) / c.
TEST(MixedModel, OfABalancedDesignIsTheAnalysisOfVariance) {
  constexpr std::size_t seeds = 6, conditions = 3;
  const MixedData data = repeated_measures(seeds, conditions, 1.0);
  double grand = 0, of_seeds = 0, residual = 0;
  std::vector<double> seed_mean(seeds), condition_mean(conditions);
  for (std::size_t s = 0; s < seeds; ++s) {
    for (std::size_t c = 0; c < conditions; ++c) {
      const double y = data.y[s * conditions + c];
      grand += y / (seeds * conditions);
      seed_mean[s] += y / conditions;
      condition_mean[c] += y / seeds;
    }
  }
  for (std::size_t s = 0; s < seeds; ++s) {
    of_seeds += conditions * std::pow(seed_mean[s] - grand, 2) / (seeds - 1);
    for (std::size_t c = 0; c < conditions; ++c) {
      residual += std::pow(data.y[s * conditions + c] - seed_mean[s] - condition_mean[c] + grand, 2) /
                  ((seeds - 1) * (conditions - 1));
    }
  }
  const MixedModel model = fit_mixed_model(data);
  EXPECT_NEAR(model.noise_variance, residual, 1e-9 * residual);
  EXPECT_NEAR(model.group_variance, (of_seeds - residual) / conditions, 1e-4);
  EXPECT_NEAR(model.coefficients[2].standard_error, std::sqrt(2 * residual / seeds), 1e-9);
  EXPECT_NEAR(model.coefficients[2].degrees, (seeds - 1) * (conditions - 1), 0.02);
}

TEST(MixedModel, WithoutInterceptsIsLeastSquares) {
  MixedData data = repeated_measures(6, 2, 0.0);
  // Negative correlation within seeds: the best intercept has no variance.
  for (std::size_t i = 0; i < data.y.size(); i += 2) {
    data.y[i] = static_cast<double>(i);
    data.y[i + 1] = -static_cast<double>(i);
  }
  const MixedModel model = fit_mixed_model(data);
  EXPECT_EQ(model.group_variance, 0);
  EXPECT_EQ(model.coefficients[1].degrees, 10);
}

TEST(MixedModel, InteractionsAreProductsOfFactors) {
  const Design design = treatment_design({"precision", "math"},
                                         {{"fp32", "0"}, {"bf16", "0"}, {"fp32", "1"}, {"bf16", "1"}}, true);
  EXPECT_EQ(design.names,
            (std::vector<std::string>{"intercept", "precision=bf16", "math=1", "precision=bf16 x math=1"}));
  EXPECT_EQ(design.x[3], (std::vector<double>{1, 1, 1, 1}));
  EXPECT_EQ(design.x[1], (std::vector<double>{1, 1, 0, 0}));
}

TEST(MixedModel, WhatCannotBeFittedIsRefused) {
  MixedData data = repeated_measures(3, 2, 1.0);
  for (auto& row : data.x) row.push_back(row[1]);  // a column twice
  EXPECT_THROW(fit_mixed_model(data), std::invalid_argument);
  EXPECT_THROW(fit_mixed_model({}), std::invalid_argument);
}

}  // namespace
}  // namespace mulligan::stats::stats_mixed_model_test
