// A run's weights at its end (D38 to D40), the order of its tokens (D37), its recorded findings and learning rates (D29).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/scratch_folder.h"
#include "tests/support/sentence.h"
#include "tools/doctor/movement.h"
#include "tools/doctor/outcome_checks.h"

namespace mulligan::doctor::doctor_movement_test {
namespace {

constexpr std::int64_t vocabulary = 200;
using Weights = std::map<std::string, std::vector<float>>;

// Three matrices, an embedding and a vector, before and after 100 steps of a healthy run.
class Trained {
 public:
  Trained() {
    for (const char* name : {"a", "b", "c"}) add(name, {64, 96}, true);
    add("tok_emb.weight", {vocabulary, 32}, true);
    add("gain", {24}, false);
    expected.assign(vocabulary, 1000);
  }
  std::vector<float>& weights(const std::string& name) { return after[name]; }
  std::vector<float>& start(const std::string& name) { return before[name]; }
  PlannedParameter& parameter(const std::string& name) {
    return *std::ranges::find(parameters, name, &PlannedParameter::name);
  }
  Samples sampled(const Weights& all) const {
    return sample_parameters(parameters, [&](const PlannedParameter& p) { return all.at(p.name()); });
  }
  Finding find_frozen() const { return ask(find_frozen_parameters); }
  Finding proportion() const { return ask(judge_proportion); }
  Finding average(const Weights& averages, double decay) const {
    const Samples of = sampled(averages);
    return ask([&](const Movement& m) { return judge_average(m, of, decay); });
  }
  // Puts back what `keep(row, column)` says.
  template <typename Keep>
  void freeze(const std::string& name, Keep keep) {
    const std::int64_t columns = parameter(name).layout.spec.type.dims[1];
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(after[name].size()); ++i) {
      if (keep(i / columns, i % columns))
        after[name][static_cast<std::size_t>(i)] = before[name][static_cast<std::size_t>(i)];
    }
  }

  Weights before, after;
  std::vector<PlannedParameter> parameters;
  std::vector<double> expected, rates = {0.01};
  std::int64_t steps = 100;

 private:
  template <typename Judge>
  Finding ask(Judge judge) const {
    const Samples from = sampled(before), to = sampled(after);
    return judge(Movement{parameters, from, to, steps, {"all"}, rates, vocabulary, expected});
  }
  // Uniform in (-1, 1), with nothing in common between two values.
  float draw() {
    return static_cast<float>(
        double(random_state_ = random_state_ * 6364136223846793005u + 1442695040888963407u) / 9.3e18 - 1);
  }
  void add(const char* name, std::initializer_list<std::int64_t> shape, bool matrix) {
    PlannedParameter p;
    p.layout.spec.name = name;
    p.layout.spec.type = TensorType(MLG_F32, shape);
    p.layout.spec.matrix = matrix;
    parameters.push_back(p);
    for (std::int64_t i = 0; i < p.layout.spec.type.elements(); ++i) {
      before[name].push_back(0.05f * draw());
      after[name].push_back(before[name].back() + 0.02f * draw());
    }
  }
  std::uint64_t random_state_ = 7;
};

bool says(const Finding& f, const std::string& words) {
  return f.verdict != CheckOutcome::pass && f.message.find(words) != std::string::npos && !f.hint.empty();
}

TEST(DoctorMovement, AHealthyRunHasNothingToSay) {
  const Trained run;
  EXPECT_EQ(run.find_frozen().verdict, CheckOutcome::pass) << run.find_frozen().message;
  EXPECT_EQ(run.proportion().verdict, CheckOutcome::pass) << run.proportion().message;
  EXPECT_EQ(run.average(run.after, 0.9).verdict, CheckOutcome::pass);
}

TEST(DoctorMovement, WhatDidNotMoveIsNamed) {
  Trained tensor;
  tensor.weights("b") = tensor.start("b");
  EXPECT_TRUE(says(tensor.find_frozen(), "b is as it was before"));
  EXPECT_EQ(tensor.find_frozen().verdict, CheckOutcome::fail);
  tensor.parameter("b").lr_multiplier = 0;
  EXPECT_EQ(tensor.find_frozen().verdict, CheckOutcome::pass) << "the configuration says so";

  Trained half;
  half.freeze("a", [](std::int64_t row, std::int64_t) { return row < 32; });
  EXPECT_TRUE(says(half.find_frozen(), "50 % of the rows of a hardly moved (between rows 0 and 31 of 64)"));
  EXPECT_EQ(half.find_frozen().verdict, CheckOutcome::fail);
  Trained few;
  few.freeze("a", [](std::int64_t row, std::int64_t) { return row == 40 || row == 41; });
  EXPECT_TRUE(says(few.find_frozen(), "between rows 40 and 41"));
  EXPECT_EQ(few.find_frozen().verdict, CheckOutcome::warn);
  Trained columns;
  columns.freeze("c", [](std::int64_t, std::int64_t column) { return column >= 48; });
  EXPECT_TRUE(says(columns.find_frozen(), "50 % of the columns of c hardly moved"));
  Trained scattered;
  scattered.freeze("c", [](std::int64_t row, std::int64_t column) { return (row + column / 3) % 2 == 0; });
  EXPECT_TRUE(says(scattered.find_frozen(), "of the elements of c, here and there, did not move"));
  EXPECT_EQ(scattered.find_frozen().verdict, CheckOutcome::fail);
}

// Weight decay moves what has no gradient.
TEST(DoctorMovement, DecayAloneIsNoMovement) {
  Trained run;
  for (std::size_t i = 0; i < run.weights("a").size(); ++i) run.weights("a")[i] = 0.6f * run.start("a")[i];
  EXPECT_TRUE(says(run.find_frozen(), "a was moved by weight decay alone"));
  Trained rows;
  for (std::size_t i = 0; i < rows.weights("a").size() / 2; ++i)
    rows.weights("a")[i] = 0.6f * rows.start("a")[i];
  EXPECT_TRUE(says(rows.find_frozen(), "50 % of the rows of a"));
}

TEST(DoctorMovement, RowsOfRareTokensMayStay) {
  Trained run;
  run.freeze("tok_emb.weight", [](std::int64_t row, std::int64_t) { return row >= 100; });
  EXPECT_TRUE(says(run.find_frozen(), "50 % of the rows of tok_emb.weight did not move"));
  std::fill(run.expected.begin() + 100, run.expected.end(), 2.0);
  EXPECT_EQ(run.find_frozen().verdict, CheckOutcome::pass);
}

TEST(DoctorMovement, ShortRunsAndOtherMastersSayNothing) {
  Trained run;
  run.weights("b") = run.start("b");
  run.steps = 19;
  EXPECT_EQ(run.find_frozen().verdict, CheckOutcome::pass);
  Trained rounded;
  rounded.parameter("a").layout.master = MLG_BF16;  // small updates are lost by rounding
  rounded.freeze("a", [](std::int64_t row, std::int64_t) { return row < 32; });
  EXPECT_EQ(rounded.find_frozen().verdict, CheckOutcome::pass);
}

TEST(DoctorMovement, ARateOfZeroIsNamed) {
  Trained run;
  run.rates = {0};
  run.after = run.before;
  EXPECT_TRUE(says(run.find_frozen(), "the learning rate of [optimizer.all] is 0"));
}

TEST(DoctorMovement, UpdatesOutOfProportionAreNamed) {
  Trained blown;
  for (float& w : blown.weights("a")) w *= 100;
  EXPECT_TRUE(says(blown.proportion(), "a went from an rms of 0.02"));
  Trained tiny;
  for (std::size_t i = 0; i < tiny.weights("c").size(); ++i)
    tiny.weights("c")[i] = tiny.start("c")[i] + (tiny.weights("c")[i] - tiny.start("c")[i]) / 200;
  EXPECT_TRUE(says(tiny.proportion(), "c moved by"));
  tiny.parameter("c").lr_multiplier = 0.005;
  EXPECT_EQ(tiny.proportion().verdict, CheckOutcome::pass) << "its row says so";
}

TEST(DoctorMovement, AveragesThatStayedBehindAreNamed) {
  const Trained run;
  EXPECT_TRUE(says(run.average(run.before, 1), "have come 0.0 % of the way"));
  EXPECT_EQ(run.average(run.before, 1).verdict, CheckOutcome::fail);
  EXPECT_NE(run.average(run.before, 1).hint.find("never takes a step in"), std::string::npos);
  Weights lagging = run.before;
  for (auto& [name, values] : lagging) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += 0.3f * (run.after.at(name)[i] - values[i]);
  }
  EXPECT_TRUE(says(run.average(lagging, 0.99999), "have come 30.0 % of the way"));
  EXPECT_NE(run.average(lagging, 0.99999).hint.find("remembers 100000 steps"), std::string::npos);
  EXPECT_EQ(run.average(lagging, 0.99999).verdict, CheckOutcome::warn);
}

// Tokens with mostly one of three successors each, and the same shuffled and read backwards.
TEST(DoctorOrder, RandomAndReversedTokensAreNamed) {
  std::uint64_t state = 3;
  const auto draw = [&](std::uint64_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
  };
  const auto text = [&] {
    std::vector<std::vector<std::uint16_t>> pieces(1);
    std::uint64_t token = 1;
    for (int i = 0; i < 60000; ++i) {
      token = draw(5) == 0 ? draw(500) : (token * 7 + 3 + draw(3)) % 500;
      pieces[0].push_back(static_cast<std::uint16_t>(token));
    }
    return pieces;
  };
  const auto training = text(), validation = text();
  EXPECT_EQ(judge_order(pair_order(training, validation)).verdict, CheckOutcome::pass);
  EXPECT_EQ(judge_order(pair_order(training, {})).verdict, CheckOutcome::pass);
  auto backwards = training;
  std::ranges::reverse(backwards[0]);
  EXPECT_TRUE(
      says(judge_order(pair_order(backwards, validation)), "read like the validation data backwards"));
  auto random = training;
  for (std::uint16_t& token : random[0]) token = static_cast<std::uint16_t>(draw(500));
  EXPECT_TRUE(says(judge_order(pair_order(random, validation)), "says nothing about the next one"));
  auto shuffled = training;
  for (std::size_t i = shuffled[0].size() - 1; i > 0; --i)
    std::swap(shuffled[0][i], shuffled[0][draw(i + 1)]);
  EXPECT_TRUE(says(judge_order(pair_order(shuffled, {})), "says nothing about the next one"));
  auto few = random;
  few[0].resize(3000);
  EXPECT_EQ(judge_order(pair_order(few, {})).verdict, CheckOutcome::pass) << "too few to say";
}

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
  for (StepRecord& record : healthy.steps) {
    if (record.step > 200) record.lr = {{"all", std::nan("")}};
  }
  EXPECT_EQ(only(healthy).verdict, CheckOutcome::fail) << "a rate that is no number";
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

TEST(RunDirectory, RecordedFindingsAreGivenAndMissingOnesSkipped) {
  const test_support::ScratchFolder folder;
  RunConfig config;
  config.phases = kMain;
  EXPECT_TRUE(refuses([&] { examine_run_directory(folder.path(), config); }, "holds no finished run"));
  folder.write("result.json",
               R"({"doctor": {"findings": [{"id": "D26", "title": "t", "verdict": "FAIL", "measured": "m",
                    "threshold": "h", "message": "no better than guessing", "hint": "look"}]}})");
  std::vector<Finding> findings = examine_run_directory(folder.path(), config);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].verdict, CheckOutcome::fail);
  EXPECT_EQ(findings[0].message, "no better than guessing");
  folder.write("result.json", R"({"steps": 3})");
  findings = examine_run_directory(folder.path(), config);
  ASSERT_EQ(findings.size(), 6u);
  for (const Finding& f : findings) EXPECT_EQ(f.verdict, CheckOutcome::skip) << f.id;
  for (const char* damaged :
       {"[1, 2]", R"({"doctor": 3})", R"({"doctor": {"findings": [{"id": "D26"}]}})",
        R"({"doctor": {"findings": [{"id": "D26", "title": "t", "verdict": "FINE", "measured": "",
                                  "threshold": "", "message": "", "hint": ""}]}})"}) {
    folder.write("result.json", damaged);
    EXPECT_FALSE(sentence_of([&] { examine_run_directory(folder.path(), config); }).empty()) << damaged;
  }
}

}  // namespace
}  // namespace mulligan::doctor::doctor_movement_test
