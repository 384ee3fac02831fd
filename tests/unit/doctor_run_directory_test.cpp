// mulligan doctor on a finished run: what result.json recorded, and the learning rates of metrics.jsonl (D29).
#include "tools/doctor/run_directory_checks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "tests/support/scratch_folder.h"
#include "tests/support/sentence.h"

namespace mulligan::doctor::doctor_run_directory_test {
namespace {

// A cosine over 500 steps, reported every tenth; from `jump` on it is that of a run which begins there.
MetricsHistory cosine(std::int64_t jump = 500) {
  MetricsHistory history;
  for (std::int64_t step = 1; step <= 500; step += 10) {
    StepRecord record;
    record.step = step;
    record.phase = "main";
    const double at = static_cast<double>(step < jump ? step : step - jump) / 500;
    record.lr = {{"all", 0.5 * (1 + std::cos(3.14159265 * at))}};
    history.steps.push_back(record);
  }
  return history;
}

std::vector<Phase> phases_of(std::initializer_list<std::tuple<const char*, LrPolicy, double>> list) {
  std::vector<Phase> phases;
  for (const auto& [name, policy, factor] : list) {
    Phase& phase = phases.emplace_back();
    phase.name = name;
    phase.lr_policy = policy;
    phase.lr_multiplier = factor;
  }
  return phases;
}
const std::vector<Phase> kMain = phases_of({{"main", LrPolicy::continued, 1.0}});

Finding only(const MetricsHistory& history, const std::vector<Phase>& phases = kMain) {
  const std::vector<Finding> findings = check_realised_rates(history, phases);
  EXPECT_EQ(findings.size(), 1u);
  return findings.empty() ? Finding{} : findings.front();
}

TEST(RunDirectory, ARateThatJumpsAtAResumeIsAWarmRestart) {
  MetricsHistory healthy = cosine();
  healthy.resumes = {200};
  EXPECT_EQ(only(healthy).verdict, CheckOutcome::pass);
  MetricsHistory jumps = cosine(201);
  jumps.resumes = {200};
  const Finding found = only(jumps);
  EXPECT_EQ(found.id, "D29");
  EXPECT_EQ(found.verdict, CheckOutcome::fail);
  EXPECT_TRUE(contains(found.message, "after step 200, where the run was resumed: this is a warm restart"));
  jumps.restarts = {{200, "all", 1, 1.0}};  // a schedule with cycles
  EXPECT_EQ(only(jumps).verdict, CheckOutcome::pass);
}

// A rate that rises all the time rises at a resume, too.
TEST(RunDirectory, AResumeWithinAWarmUpIsNoJump) {
  MetricsHistory history = cosine();
  for (StepRecord& record : history.steps) record.lr = {{"all", 1e-3 * static_cast<double>(record.step)}};
  history.resumes = {15, 100};
  EXPECT_EQ(only(history).verdict, CheckOutcome::pass);
}

TEST(RunDirectory, ASwitchOfPhasesIsDeclaredByItsPolicyOrFactor) {
  MetricsHistory history = cosine();
  PhaseSwitchRecord change;
  change.step = 100;
  change.from = "anchor";
  change.to = "main";
  change.lr_before = {{"all", 0.01}};
  change.lr_after = {{"all", 0.9}};
  history.phase_switches = {change};
  const auto judged = [&](LrPolicy policy, double before, double after) {
    return only(history, phases_of({{"anchor", LrPolicy::independent, before}, {"main", policy, after}}));
  };
  const Finding undeclared = judged(LrPolicy::continued, 1, 1);
  EXPECT_EQ(undeclared.verdict, CheckOutcome::fail);
  EXPECT_TRUE(contains(undeclared.message, "from 0.01 to 0.9 after step 100, where phase 'main' begins"));
  EXPECT_EQ(judged(LrPolicy::rejoin, 1, 1).verdict, CheckOutcome::pass);
  EXPECT_EQ(judged(LrPolicy::independent, 1, 1).verdict, CheckOutcome::pass);
  EXPECT_EQ(judged(LrPolicy::continued, 0.01, 0.9).verdict, CheckOutcome::pass) << "the phases' factors";
  EXPECT_EQ(judged(LrPolicy::continued, 1, 0.9).verdict, CheckOutcome::fail);
}

TEST(RunDirectory, ARateThatIsNoNumberFails) {
  MetricsHistory history = cosine();
  for (StepRecord& record : history.steps) {
    if (record.step > 200) record.lr = {{"all", std::nan("")}};
  }
  history.resumes = {200};
  EXPECT_EQ(only(history).verdict, CheckOutcome::fail);
}

void write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file) << text;
}

TEST(RunDirectory, RecordedFindingsAreGivenAndMissingOnesSkipped) {
  const test_support::ScratchFolder folder;
  RunConfig config;
  config.phases = kMain;
  EXPECT_TRUE(
      contains(sentence_of([&] { examine_run_directory(folder.path(), config); }), "holds no finished run"));
  const std::filesystem::path result = folder.path() / "result.json";
  write(result, R"({"doctor": {"findings": [{"id": "D26", "title": "t", "verdict": "FAIL", "measured": "m",
                    "threshold": "h", "message": "no better than guessing", "hint": "look"}]}})");
  std::vector<Finding> findings = examine_run_directory(folder.path(), config);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].verdict, CheckOutcome::fail);
  EXPECT_EQ(findings[0].message, "no better than guessing");
  write(result, R"({"steps": 3})");
  findings = examine_run_directory(folder.path(), config);
  ASSERT_EQ(findings.size(), 6u);
  for (const Finding& f : findings) EXPECT_EQ(f.verdict, CheckOutcome::skip) << f.id;
  for (const char* damaged :
       {"[1, 2]", R"({"doctor": 3})", R"({"doctor": {"findings": [{"id": "D26"}]}})",
        R"({"doctor": {"findings": [{"id": "D26", "title": "t", "verdict": "FINE", "measured": "",
                                  "threshold": "", "message": "", "hint": ""}]}})"}) {
    write(result, damaged);
    EXPECT_FALSE(sentence_of([&] { examine_run_directory(folder.path(), config); }).empty()) << damaged;
  }
}

}  // namespace
}  // namespace mulligan::doctor::doctor_run_directory_test
