// What strict rules refuse before a run starts: all of it at once, and each rule with what is predicted.
#include "tools/cost/strict_start.h"
#include "tests/support/sentence.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/plugins.h"

namespace mulligan::end_to_end::strict_start_test {
namespace {

LoadedConfig shipped(const std::string& name, std::vector<std::string> sets) {
  sets.insert(sets.begin(), {"data.validation=", "ledger.rules=strict"});
  return load_run_config(std::string(MULLIGAN_SOURCE_DIR) + "/configs/" + name, sets);
}

std::string refusal(LoadedConfig loaded, const StrictStartOptions& options = {}) {
  return refusal_of(ExitCode::bad_configuration,
                    [&] { require_strict_start(loaded, test_plugin_host(), options); });
}

Card card_of(double memory_bytes) {
  Card card = known_cards().front();
  card.memory_bytes = memory_bytes;
  return card;
}

std::string problem_of(const std::vector<StrictRule>& rules, const std::string& name) {
  const auto rule = std::ranges::find(rules, name, &StrictRule::rule);
  if (rule == rules.end()) return "there is no such rule";
  EXPECT_FALSE(rule->value.empty()) << name;
  return rule->problem;
}

TEST(StrictStart, EveryProblemIsNamedAtOnce) {
  const std::string sentence =
      refusal(shipped("quickstart.toml", {"ledger.train_seconds=130", "ledger.artifact_bytes=1000",
                                          "init.from=x.safetensors", "ttt.document_fraction=0.5"}),
              {.card = card_of(1e6), .source = MULLIGAN_SOURCE_DIR});
  for (const char* part :
       {"init.from = 'x.safetensors'", "130 s of training leave 0 s of ledger.train_seconds",
        "bytes predicted", "ttt.document_fraction = 0.5", "memory of training needs",
        "memory of calibration needs", "memory of test-time training needs"}) {
    EXPECT_TRUE(contains(sentence, part)) << part << " is not in: " << sentence;
  }
  EXPECT_EQ(sentence.find('\n'), std::string::npos);
}

TEST(StrictStart, ARunThatKeepsTheRulesIsTakenAndAnyUnderOpenRules) {
  EXPECT_EQ(refusal(shipped("quickstart.toml", {"ledger.train_seconds=140", "ledger.artifact_bytes=16000000",
                                                "ttt.document_fraction=1"}),
                    {.card = card_of(80e9), .source = MULLIGAN_SOURCE_DIR}),
            "");
  EXPECT_EQ(refusal(shipped("quickstart.toml", {"ledger.rules=open", "ledger.artifact_bytes=1"})), "");
}

TEST(StrictStart, TheReserveHoldsTheCalibration) {
  const auto problem = [](const std::string& reserve) {
    LoadedConfig loaded = shipped("quickstart.toml", {"ledger.train_seconds=130", reserve});
    return problem_of(strict_rules_at_start(loaded, test_plugin_host(), {.card = card_of(80e9)}),
                      "seconds of training");
  };
  EXPECT_TRUE(contains(problem("train.reserve_seconds=0"), "raise train.reserve_seconds above"));
  EXPECT_EQ(problem("train.reserve_seconds=20"), "");
}

// The record's strict configuration is predicted, rule by rule, without its data and without a GPU.
TEST(StrictStart, TheRecordIsPredictedRuleByRule) {
  LoadedConfig loaded = shipped("records/pr1886_strict.toml", {});
  const std::vector<StrictRule> rules = strict_rules_at_start(
      loaded, test_plugin_host(), {.card = find_card("h100"), .ranks = 8, .source = MULLIGAN_SOURCE_DIR});
  for (const char* name : {"start of training", "memory of calibration", "seconds of training",
                           "memory of training", "memory of test-time training"}) {
    EXPECT_EQ(problem_of(rules, name), "") << name;
  }
  const std::string table = strict_rules_table(rules);
  EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(table, '\n')), rules.size());
  EXPECT_TRUE(contains(table, "bytes of model and code"));
}

}  // namespace
}  // namespace mulligan::end_to_end::strict_start_test
