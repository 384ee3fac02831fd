// The arena's two rules against the fixture's cases: acceptance and "better than". Tolerance 1e-12, as the manifest says.
#include <gtest/gtest.h>

#include "tests/golden/golden_fixture.h"
#include "tools/stats/arena_rules.h"

namespace mulligan::arena_rules_golden_test {
namespace {

constexpr double rule_tolerance = 1e-12;

TEST(ArenaRulesGolden, Acceptance) {
  const GoldenFixture fixture("arena-schedule");
  const nlohmann::json& rule = fixture.manifest().at("acceptance");
  ASSERT_FALSE(rule.at("cases").empty());
  for (const nlohmann::json& item : rule.at("cases")) {
    const auto losses = item.at("losses").get<std::vector<double>>();
    const stats::ArenaStep step = stats::judge_arena_step(1, losses);
    EXPECT_EQ(step.runs, losses.size());
    EXPECT_NEAR(step.mean, item.at("mean").get<double>(), rule_tolerance) << item;
    EXPECT_NEAR(step.value, item.at("lhs").get<double>(), rule_tolerance) << item;
    EXPECT_EQ(step.accepted, item.at("accepted").get<bool>()) << item;
  }
  // What the text of the rule names as its limit is accepted.
  for (const nlohmann::json& item : rule.at("edge")) {
    const stats::ArenaStep step = stats::judge_arena_step(1, item.at("losses").get<std::vector<double>>());
    EXPECT_NEAR(step.value, item.at("lhs_about").get<double>(), 1e-9);
    EXPECT_TRUE(step.accepted);
  }
}

stats::ArenaStep side_of(const nlohmann::json& side) {
  stats::ArenaStep result;
  result.step = side.at("steps");
  result.runs = side.at("n");
  result.mean = side.at("mean");
  return result;
}

TEST(ArenaRulesGolden, BetterThan) {
  const GoldenFixture fixture("arena-schedule");
  const nlohmann::json& cases = fixture.manifest().at("pairwise").at("cases");
  ASSERT_FALSE(cases.empty());
  for (const nlohmann::json& item : cases) {
    const stats::ArenaComparison comparison =
        stats::compare_arena(side_of(item.at("old")), side_of(item.at("new")));
    EXPECT_NEAR(comparison.value, item.at("lhs").get<double>(), rule_tolerance) << item;
    EXPECT_EQ(comparison.better, item.at("better").get<bool>()) << item;
  }
}

}  // namespace
}  // namespace mulligan::arena_rules_golden_test
