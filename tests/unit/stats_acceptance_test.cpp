// Whether a record is accepted, what a study says of two conditions, and the results of the optimiser benchmark.
#include "tests/support/sentence.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <limits>
#include <numbers>

#include "tools/stats/acceptance.h"
#include "tools/stats/arena_rules.h"
#include "tools/stats/study.h"

namespace mulligan::stats::stats_acceptance_test {
namespace {

const std::vector<double> pr1768 = {1.07146, 1.07014, 1.07082};
const std::vector<double> pr1886 = {1.07010, 1.06920, 1.06942};

// Bits per byte of a sample with this mean and standard deviation in nats per token.
std::vector<double> sample_of(double mean, double deviation, std::size_t n, double bytes_per_token) {
  std::vector<double> values(n);
  for (std::size_t i = 0; i < n; ++i) {
    const double spread = deviation * std::sqrt(static_cast<double>(n - 1) / static_cast<double>(n));
    values[i] = (mean + (i % 2 ? spread : -spread)) / (std::numbers::ln2 * bytes_per_token);
  }
  return values;
}

TEST(Acceptance, PullRequest1130IsRefused) {
  AcceptanceRule rule;
  rule.bytes_per_token = 1.8809 / 1.1140 / std::numbers::ln2;
  EXPECT_NEAR(rule.bytes_per_token, 2.436, 0.0005);
  const std::vector<double> reference = {1.8843 / (std::numbers::ln2 * rule.bytes_per_token)};
  const Acceptance result =
      accept_record(sample_of(1.8809, 0.00082, 12, rule.bytes_per_token), reference, rule);
  EXPECT_FALSE(result.accepted);
  EXPECT_NEAR(result.test.difference, 0.0034, 5e-6);
  EXPECT_EQ(result.decision.find("REJECT: the mean is better by 0.0034 nats, less than the 0.0050"), 0u)
      << result.decision;
  ASSERT_EQ(result.notes.size(), 1u);  // a published number has no variance
}

TEST(Acceptance, TheNextRecordWasNoRecordByTheRule) {
  AcceptanceRule rule;
  rule.bytes_per_token = 3.7;
  const Acceptance result = accept_record(pr1886, pr1768, rule);
  EXPECT_FALSE(result.accepted);
  EXPECT_NEAR(result.difference_bpb, 0.001233, 5e-7);
  rule.margin_nats = 0;
  EXPECT_FALSE(accept_record(pr1886, pr1768, rule).accepted);  // p = 0.032
  rule.alpha = 0.05;
  EXPECT_TRUE(accept_record(pr1886, pr1768, rule).accepted);
  rule.alpha = 0.01;
  rule.paired = true;
  EXPECT_TRUE(accept_record(pr1886, pr1768, rule).accepted);  // p = 0.0070
}

TEST(Acceptance, ARunThatIsCountedThreeTimesIsOneRun) {
  const AcceptanceRule rule{0.005, 0.01, 3.7, false};
  for (const auto& ours :
       {std::vector{1.0, 1.0, 1.0}, std::vector{1.0123456789, 1.0123456789, 1.0134567891}}) {
    const Acceptance result = accept_record(ours, {1.1, 1.11, 1.09}, rule);
    EXPECT_FALSE(result.accepted);
    EXPECT_TRUE(contains(result.decision, "of one run"));
  }
  EXPECT_TRUE(accept_record({1.0, 1.0, 1.001}, {1.1, 1.11, 1.09}, rule).accepted)
      << "published with few digits";
  EXPECT_THROW(accept_record({1.0, std::nan(""), 1.0}, {1.1}, rule), std::invalid_argument);
}

TEST(Acceptance, CollapsedRunsAreNamedAndCount) {
  EXPECT_EQ(collapsed_values({1.0696, 1.1214, 1.1214, 1.0692, 1.0694}), (std::vector<std::size_t>{1, 2}));
  EXPECT_EQ(collapsed_values({1.0696, 1.1214}), (std::vector<std::size_t>{1}));
  EXPECT_EQ(collapsed_values({1.0696, 1.0697, 1.0698, 1.0710}), (std::vector<std::size_t>{3}));  // > 5 MAD
  EXPECT_TRUE(collapsed_values(pr1886).empty());
  EXPECT_TRUE(collapsed_values({1.0696, 1.0596, 1.0695}).empty());  // lower is not a collapse
  AcceptanceRule rule;
  rule.bytes_per_token = 3.7;
  const Acceptance result = accept_record({1.060, 1.1214, 1.0599}, {1.0700, 1.0698, 1.0701}, rule);
  EXPECT_FALSE(result.accepted);
  ASSERT_EQ(result.notes.size(), 1u);
  EXPECT_TRUE(contains(result.notes[0], "1.12140"));
}

Observations two_records() {
  Observations all{"val_bpb", {"record"}, {}};
  for (std::size_t i = 0; i < 3; ++i) {
    const std::string seed = std::to_string(i);
    all.values.push_back({"a" + seed, {"1768"}, seed, pr1768[i], "validation"});
    all.values.push_back({"b" + seed, {"1886"}, seed, pr1886[i], "validation"});
  }
  return all;
}

TEST(Study, SaysWhatBothTestsSay) {
  StudyOptions options;
  options.margin = 0.005;
  const Study study = make_study(two_records(), options);
  ASSERT_EQ(study.comparisons.size(), 1u);
  const ConditionComparison& comparison = study.comparisons.front();
  EXPECT_EQ(study.options.baseline, "1768");
  EXPECT_NEAR(comparison.welch->t, 2.64, 0.005);
  EXPECT_NEAR(comparison.welch->degrees, 3.61, 0.005);
  EXPECT_NEAR(comparison.paired->t, 8.38, 0.005);
  EXPECT_EQ(comparison.paired->degrees, 2);
  EXPECT_NEAR(comparison.paired->greater, 0.0070, 0.00005);
  EXPECT_DOUBLE_EQ(comparison.signs->two_sided, 0.25);
  EXPECT_LT(*comparison.equivalence, 0.01);
  EXPECT_DOUBLE_EQ(comparison.holm, comparison.p);
  EXPECT_TRUE(contains(study_text(study), "| 1886", "no permutation p can be below 0.25"));
  EXPECT_NEAR(study_json(study)["comparisons"][0]["gain"].get<double>(), 0.001233, 5e-7);
  Observations collapsed = two_records();
  collapsed.values[2].value = 1.1214;
  EXPECT_EQ(study_json(make_study(collapsed))["conditions"][0]["collapsed"],
            nlohmann::ordered_json::array({"a1"}));
}

TEST(Study, RefusesWindowsThatDoNotMatch) {
  Observations all = two_records();
  all.values.back().window = "steps 101 to 500";
  EXPECT_TRUE(refuses([&] { make_study(all); }, ExitCode::bad_data, "'b2' over steps 101 to 500"));
}

TEST(Study, SeedsThatAreNotSharedMakeNoPairs) {
  Observations all = two_records();
  all.values.back().seed = "9";
  const Study study = make_study(all);
  EXPECT_FALSE(study.comparisons.front().paired);
  EXPECT_TRUE(study.comparisons.front().welch);
}

// Below ten values a bootstrap interval covers far less than is written above it: it is not offered.
TEST(Study, BootstrapIntervalsBeginAtTenRuns) {
  Observations all{"val_bpb", {"record"}, {}};
  for (int i = 0; i < 19; ++i)
    all.values.push_back({"run", {i < 9 ? "nine" : "ten"}, std::to_string(i), 1 + 0.001 * (i * i % 7), ""});
  const Study study = make_study(all);
  EXPECT_FALSE(study.conditions[0].bootstrap);
  EXPECT_TRUE(study.conditions[0].interval);
  EXPECT_TRUE(study.conditions[1].bootstrap);
  EXPECT_FALSE(study_json(study)["conditions"][0].contains("bootstrap_bca"));
  EXPECT_FALSE(contains(study_text(make_study(two_records())), "BCa"));  // three runs each
}

TEST(Study, ComparesNothingBelowThreeRuns) {
  Observations all = two_records();
  all.values.pop_back();
  all.values.push_back({"c", {"third"}, "42", 1.08, "validation"});
  const Study study = make_study(all);
  ASSERT_EQ(study.comparisons.size(), 2u);
  for (const ConditionComparison& comparison : study.comparisons) {
    EXPECT_FALSE(comparison.reportable);
    EXPECT_FALSE(comparison.welch || comparison.paired);
    EXPECT_FALSE(study_json(study)["comparisons"][0].contains("gain"));
  }
  EXPECT_TRUE(contains(study_text(study), "below three there is no interval, no gain and no test"));
}

TEST(Observations, AreWrittenAsCsv) {
  const Observations all{"val_bpb", {"precision", "data, mix"}, {{"a", {"fp32", "a \"b\""}, "42", 1.5, "w"}}};
  EXPECT_EQ(condition_of(all, all.values[0]), "precision=fp32, data, mix=a \"b\"");
  EXPECT_EQ(observations_csv(all),
            "run,seed,window,precision,\"data, mix\",val_bpb\na,42,w,fp32,\"a \"\"b\"\"\",1.5\n");
}

ArenaRun run_of(std::string name, std::map<std::int64_t, double> losses) {
  return {std::move(name), std::move(losses)};
}

TEST(StatsArena, OnlyStepsThatAllRunsHaveCount) {
  const std::vector<ArenaRun> runs = {run_of("a", {{100, 3.30}, {200, 3.270}, {210, 3.20}}),
                                      run_of("b", {{100, 3.30}, {200, 3.272}})};
  const std::vector<ArenaStep> steps = judge_arena(runs);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_NEAR(steps[1].mean, 3.271, 1e-12);
  EXPECT_NEAR(steps[1].deviation.value(), 0.002 / std::sqrt(2), 1e-12);
  EXPECT_NEAR(steps[1].value, 0.009 * std::sqrt(2), 1e-12);
  ASSERT_TRUE(earliest_accepted(steps));
  EXPECT_EQ(earliest_accepted(steps)->step, 200);
  EXPECT_FALSE(steps[0].accepted);
}

TEST(StatsArena, ManyRunsNeedASmallerDistance) {
  EXPECT_FALSE(judge_arena_step(1, std::vector<double>(1, 3.2785)).accepted);
  EXPECT_FALSE(judge_arena_step(1, std::vector<double>(7, 3.2785)).accepted);        // 0.00397
  EXPECT_TRUE(judge_arena_step(1, std::vector<double>(8, 3.2785)).accepted);         // 0.00424
  EXPECT_NEAR(judge_arena_step(1, std::vector<double>(1, 3.276)).p, 0.00104, 1e-5);  // z = 3.0769
}

TEST(StatsArena, ARunThatDivergedRefusesTheResult) {
  const ArenaStep step =
      judge_arena_step(1, std::vector<double>{3.2, 3.2, std::numeric_limits<double>::quiet_NaN()});
  EXPECT_FALSE(step.accepted);
}

TEST(StatsArena, ARunCountsOnce) {
  const ArenaRun run = run_of("a", {{0, 10.8}, {100, 3.5}, {200, 3.27}});
  ArenaRun copy = run;
  copy.name = "b";
  ASSERT_TRUE(same_arena_run(std::vector{run, copy}));
  EXPECT_EQ(same_arena_run(std::vector{run, copy})->second, "b");
  copy.losses[200] = 3.28;
  EXPECT_FALSE(same_arena_run(std::vector{run, copy}));
}

constexpr const char* two_runs =
    "print(f\"step:{step}/{steps} val_loss:{loss}\")\n"
    "====================================\n"
    "step:0/20 val_loss:10.82584 train_time:0.001s step_avg:nanms\n"
    "step:1/20 train_time:0.2s\n"
    "step:10/20 val_loss:3.50000 train_time:1s step_avg:1ms\n"
    "step:20/20 val_loss:3.27000 val_avg_loss:3.27 val_ema_loss:3.26 train_time:2s\n"
    "step:0/20 val_loss:10.82584 train_time:0.001s\n"
    "step:10/20 val_loss:3.51000 train_time:1s\n"
    "step:20/20 val_loss:nan train_time:2s\n";

TEST(StatsArena, ALogCanHoldSeveralRuns) {
  const std::vector<ArenaRun> runs = parse_arena_log(two_runs, "log", "val_loss");
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[1].name, "log run 2");
  EXPECT_EQ(runs[0].losses, (std::map<std::int64_t, double>{{0, 10.82584}, {10, 3.5}, {20, 3.27}}));
  EXPECT_EQ(runs[1].losses.at(10), 3.51);
  EXPECT_TRUE(std::isnan(runs[1].losses.at(20)));
  EXPECT_EQ(runs[1].planned_steps, 20);
}

TEST(StatsArena, AnotherLossOfALogCanBeTheScore) {
  const std::string averaged =
      "step:20/20 val_loss:3.28243 val_avg_loss:3.28 val_ema_loss:3.27833 train_time:2s\n";
  EXPECT_EQ(parse_arena_log(averaged, "log", "val_ema_loss")[0].losses.at(20), 3.27833);
  EXPECT_EQ(parse_arena_log(averaged, "log", "val_loss")[0].losses.at(20), 3.28243);
}

std::string log_refusal(const std::string& text) {
  return refusal_of(ExitCode::bad_data, [&] { parse_arena_log(text, "log", "val_loss"); });
}

TEST(StatsArena, LogsThatSayTwoThingsAreRefused) {
  EXPECT_TRUE(contains(log_refusal("nothing\n"), "no log of the optimiser benchmark"));
  EXPECT_TRUE(
      contains(log_refusal("step:1/9 val_loss:3.1x\n"), "line 1: the validation has no number 'val_loss'"));
  EXPECT_TRUE(contains(log_refusal("step:1/9 val_loss:3.1\nstep:1/9 val_loss:3.2\n"), "two losses"));
  EXPECT_TRUE(contains(log_refusal("step:1/9 val_loss:3.1\nstep:2/8 val_loss:3\n"), "goes on as one of 8"));
}

}  // namespace
}  // namespace mulligan::stats::stats_acceptance_test
