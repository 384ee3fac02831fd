// The rules of a try, and how often they are wrong on simulated runs.
#include "tools/try/rules.h"

#include <gtest/gtest.h>

#include <vector>

#include "framework/core/philox.h"

namespace mulligan::tries::try_rules_test {
namespace {

MetricsHistory reports(const std::vector<std::pair<double, double>>& losses) {
  MetricsHistory metrics;
  for (const auto& [fraction, loss] : losses) {
    StepRecord& step = metrics.steps.emplace_back();
    step.budget_fraction = fraction;
    step.window_loss_nats = loss;
  }
  return metrics;
}

TEST(TryRules, ALossIsReadBetweenTwoReports) {
  EXPECT_FALSE(loss_at({}, 0.25));
  EXPECT_FALSE(loss_at(reports({{0.1, 6}, {0.2, 5}}), 0.25));
  EXPECT_DOUBLE_EQ(loss_at(reports({{0.1, 6}, {0.2, 5}, {0.3, 4}}), 0.25).value(), 4.5);
  EXPECT_DOUBLE_EQ(loss_at(reports({{0.4, 6}}), 0.25).value(), 6);
  EXPECT_DOUBLE_EQ(loss_at(reports({{0.25, 6}, {0.25, 5}}), 0.25).value(), 6);
}

TEST(TryRules, ARunEndsWhereItIsAboveTheBand) {
  const AbortLimits limits = {5.0, std::nullopt};
  EXPECT_EQ(why_end(reports({{0.1, 6}, {0.2, 5.5}}), limits), "");  // not there yet
  EXPECT_EQ(why_end(reports({{0.2, 5.5}, {0.3, 4}}), limits), "");
  EXPECT_NE(why_end(reports({{0.2, 5.5}, {0.3, 5.5}}), limits).find("25 %"), std::string::npos);
  EXPECT_EQ(why_end(reports({{0.2, 4}, {0.6, 9}}), {std::nullopt, std::nullopt}), "");
  EXPECT_FALSE(abort_limit(std::vector<double>{4, 4.1}));
  // 4 + 9.925 * 0.1 * sqrt(4 / 3) + 0.02
  EXPECT_NEAR(abort_limit(std::vector<double>{3.9, 4, 4.1}).value(), 5.16603, 1e-4);
}

// Runs without a difference: the losses at both shares scatter alike, and go together within a run.
struct Simulation {
  PhiloxStream random{59, "try"};
  std::uint64_t drawn = 0;
  double scale = 1;  // so that the margin is nothing

  std::vector<double> run() {
    const double own = random.normal(drawn++);
    return {4 + scale * (own + random.normal(drawn++)), 3 + scale * (own + random.normal(drawn++))};
  }
  bool ends(double shift) {
    std::vector<std::vector<double>> base(2);
    for (int seed = 0; seed < 3; ++seed) {
      const std::vector<double> losses = run();
      for (std::size_t i = 0; i < 2; ++i) base[i].push_back(losses[i]);
    }
    const std::vector<double> other = run();
    return !why_end(reports({{0.25, other[0] + shift}, {0.5, other[1] + shift}}),
                    {abort_limit(base[0]), abort_limit(base[1])})
                .empty();
  }
  int ended(int pairs, double shift = 0) {
    int count = 0;
    for (int pair = 0; pair < pairs; ++pair) count += ends(shift) ? 1 : 0;
    return count;
  }
};

TEST(TryRules, EarlyEndsAreWrongAsRarelyAsIsSaid) {
  const int of_200 = Simulation().ended(200);
  RecordProperty("ended_of_200", of_200);
  EXPECT_LE(of_200, 2);  // 1 %: two comparisons of 0.5 % each
  const int of_many = Simulation().ended(20'000);
  RecordProperty("ended_of_20000", of_many);
  EXPECT_LE(of_many, 200);
  EXPECT_GE(of_many, 100);  // the limits are no wider than they must be
  Simulation small;
  small.scale = 0.002;
  EXPECT_LE(small.ended(20'000), 100);  // the margin counts where the base hardly scatters
  EXPECT_GE(Simulation().ended(200, 100), 190);
}

// All looks of a variant without an effect, at 3, 6 and 9 pairs.
TEST(TryRules, KeepsByChanceAreAsRareAsIsSaid) {
  const PhiloxStream random(59, "looks");
  constexpr int tries = 5'000;
  int kept = 0, first = 0, open = 0;
  for (std::uint64_t number = 0; number < tries; ++number) {
    std::vector<double> base, variant;
    std::string verdict = "undecided";
    for (std::size_t look = 0; look < look_alpha.size() && verdict == "undecided"; ++look) {
      while (base.size() < 3 * (look + 1)) {
        const std::uint64_t at = 18 * number + 2 * base.size();
        base.push_back(random.normal(at));
        variant.push_back(random.normal(at + 1));
      }
      verdict = verdict_of(stats::paired_test(base, variant), look);
      if (verdict == "keep") ++(look == 0 ? first : kept);
    }
    open += verdict == "undecided" ? 1 : 0;
  }
  EXPECT_EQ(open, 0) << "the third look decides";
  RecordProperty("kept_of_5000", first + kept);
  EXPECT_NEAR(first, 0.025 * tries, 35);
  EXPECT_LE(first + kept, 0.05 * tries);
}

TEST(TryRules, AVerdictNeedsADirection) {
  const std::vector<double> base = {1.62, 1.63, 1.61}, lower = {1.52, 1.53, 1.515};
  EXPECT_EQ(verdict_of(stats::paired_test(base, lower), 0), "keep");
  EXPECT_EQ(verdict_of(stats::paired_test(lower, base), 0), "discard");
  EXPECT_EQ(verdict_of(stats::paired_test(base, base), 0), "undecided");
  EXPECT_EQ(verdict_of(stats::paired_test(base, base), 2), "discard");
}

TEST(TryRules, TheSmallestDifferenceIsFoundInFourOfFive) {
  const PhiloxStream random(59, "power");
  for (const std::size_t pairs : {3, 6, 20}) {
    const double least = stats::smallest_difference(pairs, 0.025);
    int found = 0;
    constexpr int tries = 4'000;
    for (std::uint64_t number = 0; number < tries; ++number) {
      std::vector<double> differences;
      for (std::size_t i = 0; i < pairs; ++i) differences.push_back(least + random.normal(number * 32 + i));
      found += stats::one_sample_test(differences).greater <= 0.025 ? 1 : 0;
    }
    EXPECT_NEAR(found, 0.8 * tries, 80) << pairs;
  }
  EXPECT_THROW(stats::smallest_difference(1, 0.025), std::invalid_argument);
}

}  // namespace
}  // namespace mulligan::tries::try_rules_test
