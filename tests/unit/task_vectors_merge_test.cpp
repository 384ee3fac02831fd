// Merging against each method's definition, written naively.
#include "lab/task_vectors/merge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/sentence.h"
#include "tests/unit/task_vectors_support.h"

namespace mulligan::task_vectors::task_vectors_merge_test {
namespace {

using test_support::model_of;
using test_support::NamedValues;
using test_support::normal_numbers;

// A base of two tensors and three models; the first tensor's differences are larger.
struct Family {
  std::vector<double> base;              // both tensors side by side
  std::vector<std::vector<double>> tau;  // by model
  Model base_model;
  std::vector<Model> models;
};

constexpr std::size_t first = 13, second = 30;

Model split(const std::string& name, const std::vector<float>& all) {
  return model_of(name, {{"a", {all.begin(), all.begin() + first}}, {"b", {all.begin() + first, all.end()}}});
}

Family family() {
  Family f;
  const std::vector<float> start = normal_numbers(first + second, 1, "merge/base");
  f.base.assign(start.begin(), start.end());
  f.base_model = split("base", start);
  for (int t = 0; t < 3; ++t) {
    std::vector<float> tuned = start;
    const std::vector<float> change = normal_numbers(first + second, 0.1, "merge/" + std::to_string(t));
    for (std::size_t i = 0; i < tuned.size(); ++i) tuned[i] += change[i] * (i < first ? 3.0f : 1.0f);
    f.tau.emplace_back();
    for (std::size_t i = 0; i < tuned.size(); ++i)
      f.tau.back().push_back(static_cast<double>(tuned[i]) - start[i]);
    f.models.push_back(split("m" + std::to_string(t), tuned));
  }
  return f;
}

std::vector<float> merged(const Model& base, const std::vector<Model>& models, const MergeOptions& options) {
  std::vector<float> all;
  merge(base, models, options, [&](std::size_t index, const std::vector<float>& values) {
    EXPECT_EQ(index, all.empty() ? 0u : 1u);
    all.insert(all.end(), values.begin(), values.end());
  });
  return all;
}

TEST(Merge, TaskArithmeticAddsTheScaledSum) {
  const Family f = family();
  for (const double scale : {0.0, 0.3, -1.0, 2.5}) {
    const auto out = merged(f.base_model, f.models, {MergeMethod::task_arithmetic, scale, 1});
    for (std::size_t i = 0; i < f.base.size(); ++i)
      EXPECT_NEAR(out[i], f.base[i] + scale * (f.tau[0][i] + f.tau[1][i] + f.tau[2][i]), 1e-6);
  }
}

TEST(Merge, AverageOfScaleOneIsTheMeanOfTheModels) {
  const Family f = family();
  const auto out = merged(f.base_model, f.models, {MergeMethod::average, 1, 1});
  for (std::size_t i = 0; i < f.base.size(); ++i)
    EXPECT_NEAR(out[i], f.base[i] + (f.tau[0][i] + f.tau[1][i] + f.tau[2][i]) / 3, 1e-6);
}

// The three stages of the paper on the whole vector, each written out.
TEST(Merge, TiesTrimsElectsAndMerges) {
  const Family f = family();
  for (const double keep : {0.2, 0.5, 1.0}) {
    auto trimmed = f.tau;
    for (auto& tau : trimmed) {
      std::vector<double> sizes;
      for (const double x : tau) sizes.push_back(std::abs(x));
      std::ranges::sort(sizes, std::greater<>{});
      const double border = sizes[static_cast<std::size_t>(keep * static_cast<double>(sizes.size())) - 1];
      for (double& x : tau) x = std::abs(x) >= border ? x : 0;
    }
    const auto out = merged(f.base_model, f.models, {MergeMethod::ties, 0.7, keep});
    int zeros = 0;
    for (std::size_t i = 0; i < f.base.size(); ++i) {
      const double sum = trimmed[0][i] + trimmed[1][i] + trimmed[2][i];
      double agreed = 0;
      int count = 0;
      for (const auto& tau : trimmed) {
        if (tau[i] * sum > 0) agreed += tau[i], ++count;
      }
      zeros += count == 0;
      EXPECT_NEAR(out[i], f.base[i] + 0.7 * (count ? agreed / count : 0), 1e-6) << keep << " " << i;
    }
    EXPECT_EQ(zeros == 0, keep == 1.0);
  }
}

// 1 and -1 cancel: the sign is the one that most weights have.
TEST(Merge, TiesGivesADrawToTheMajority) {
  const Model base = model_of("base", {{"a", {0, 0, 0}}});
  for (const float side : {1.0f, -1.0f}) {
    const auto out = merged(
        base, {model_of("x", {{"a", {1, side, 2 * side}}}), model_of("y", {{"a", {-1, side, 4 * side}}})},
        {MergeMethod::ties, 1, 1});
    EXPECT_EQ(out, (std::vector<float>{side, side, 3 * side}));
  }
}

TEST(Merge, TiesOfAShareBelowOneWeightKeepsNothing) {
  const Model base = model_of("base", {{"a", {1, 2}}});
  const auto out = merged(base, {model_of("x", {{"a", {5, 6}}})}, {MergeMethod::ties, 1, 0.4});
  EXPECT_EQ(out, (std::vector<float>{1, 2}));
}

TEST(Merge, RefusesWhatDoesNotFit) {
  const Model base = model_of("base", {{"a", {1, 2}}}), tuned = model_of("t", {{"a", {3e38f, 3}}});
  const auto refusal = [&](const std::vector<Model>& models, const MergeOptions& options) {
    return sentence_of([&] { merged(base, models, options); });
  };
  EXPECT_TRUE(contains(refusal({}, {}), "nothing to merge"));
  EXPECT_TRUE(contains(refusal({tuned}, {MergeMethod::average, NAN, 1}), "scale"));
  EXPECT_TRUE(contains(refusal({tuned}, {MergeMethod::ties, 1, 0}), "keep"));
  EXPECT_TRUE(contains(refusal({tuned}, {MergeMethod::ties, 1, 1.5}), "keep"));
  EXPECT_TRUE(contains(refusal({model_of("u", {{"b", {1, 2}}})}, {}), "'b' [2]"));
  EXPECT_TRUE(contains(refusal({tuned}, {MergeMethod::average, 2, 1}), "smaller scale"));
}

}  // namespace
}  // namespace mulligan::task_vectors::task_vectors_merge_test
