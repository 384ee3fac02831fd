// The length schedule of a later record as rows [[phase]], against its script: lengths by share of the budget
// and by step, and simulated runs with warm-down, re-warm-up and the start of the loop.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "framework/config/run_config.h"
#include "framework/plugin/schedule.h"
#include "framework/step/phase_progress.h"
#include "tests/golden/golden_fixture.h"
#include "tests/support/plugins.h"

namespace mulligan::seq_schedule_golden_test {
namespace {

using Json = nlohmann::json;
constexpr double kTolerance = 1e-12;

struct Stage {
  double fraction;
  std::int64_t length;
};

std::vector<Stage> stages_of(const Json& plan) {
  std::vector<Stage> stages;
  for (const Json& stage : plan.at("parsed")) stages.push_back({stage.at(0), stage.at(1)});
  return stages;
}

// A run whose phases are the stages, with the loop from `loop_at` on (2: never): the rows that a
// configuration has for such a schedule.
std::vector<Phase> phases_of(const std::vector<Stage>& stages, std::int64_t rewarm_steps,
                             double loop_at = 2) {
  const bool loops = loop_at <= 1;
  std::string rows;
  const auto row = [&](std::int64_t length, bool looped, bool new_length, const std::string& end) {
    rows += fmt::format("[[phase]]\nsequence_length = {}\nlayer_order = \"{}\"\n{}", length,
                        looped ? "looped" : "plain", end);
    if (new_length && rewarm_steps > 0) rows += fmt::format("rewarm_steps = {}\n", rewarm_steps);
  };
  double begin = 0;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const bool last = std::ranges::all_of(stages.begin() + static_cast<std::ptrdiff_t>(i), stages.end(),
                                          [&](const Stage& s) { return s.length == stages[i].length; });
    const bool changes = i > 0 && stages[i].length != stages[i - 1].length;
    const std::string end = last ? "" : fmt::format("through_fraction = {:.17g}\n", stages[i].fraction);
    const bool split = loops && begin < loop_at && (last || loop_at <= stages[i].fraction);
    if (split) row(stages[i].length, false, changes, fmt::format("until_fraction = {:.17g}\n", loop_at));
    row(stages[i].length, loops && (split || begin >= loop_at), changes && !split, end);
    if (last) break;
    begin = stages[i].fraction;
  }
  std::int64_t longest = 0;
  for (const Stage& stage : stages) longest = std::max(longest, stage.length);
  const std::string text =
      fmt::format(R"(
[data]
train = "a"
validation = "b"
tokenizer = "c"
[model]
vocabulary = 64
layers = 4
width = 32
heads = 2
{}
[optimizer.all]
plugin = "adamw"
lr = 0.01
[[parameters]]
match = "*"
optimizer = "all"
[train]
steps = 10
tokens_per_step = 3072
sequence_length = {}
{}
)",
                  loops ? "[model.loop]\nfirst = 1\nlast = 2\nextra_passes = 1\n" : "", longest, rows);
  return parse_run_config(text, "run.toml").config.phases;
}

TEST(SeqScheduleGolden, LengthsByShareOfTheBudget) {
  const GoldenFixture fixture("seq_schedule");
  const std::vector<double> progress = fixture.doubles("progress");
  int plans = 0;
  for (const auto& [name, info] : fixture.manifest().at("info").items()) {
    if (!info.contains("parsed")) continue;
    SCOPED_TRACE(name);
    const std::vector<Phase> phases = phases_of(stages_of(info), 0);
    const std::vector<std::int32_t> lengths = fixture.ints("len." + name);
    ASSERT_EQ(lengths.size(), progress.size());
    for (std::size_t i = 0; i < progress.size(); ++i) {
      const double share = std::clamp(progress[i], 0.0, 1.0);
      EXPECT_EQ(phases[phase_at(phases, 0, 0, share)].sequence_length, lengths[i]) << "at " << progress[i];
    }
    ++plans;
  }
  EXPECT_GT(plans, 0);
}

// In the script's mode of so many steps: the share is that of the steps.
TEST(SeqScheduleGolden, LengthsByStep) {
  const GoldenFixture fixture("seq_schedule");
  int plans = 0;
  for (const auto& [name, info] : fixture.manifest().at("info").items()) {
    if (!info.contains("parsed")) continue;
    SCOPED_TRACE(name);
    const std::string meaning =
        fixture.manifest().at("tensors").at("len_step." + name).at("meaning").get<std::string>();
    int iterations = 0;
    ASSERT_EQ(std::sscanf(meaning.c_str(), "step mode, %d iterations", &iterations), 1);
    const std::vector<Phase> phases = phases_of(stages_of(info), 0);
    const std::vector<std::int32_t> lengths = fixture.ints("len_step." + name);
    std::size_t phase = 0;  // as a run goes: from step to step
    for (std::size_t step = 0; step < lengths.size(); ++step) {
      const double share = std::min(1.0, static_cast<double>(step) / iterations);
      phase = phase_at(phases, phase, static_cast<std::int64_t>(step), share);
      EXPECT_EQ(phases[phase].sequence_length, lengths[step]) << "step " << step;
    }
    ++plans;
  }
  EXPECT_GT(plans, 0);
}

TEST(SeqScheduleGolden, SimulatedRuns) {
  const GoldenFixture fixture("seq_schedule");
  const Json& infos = fixture.manifest().at("info");
  int runs = 0;
  for (const auto& [name, info] : infos.items()) {
    if (!name.starts_with("run.")) continue;
    SCOPED_TRACE(name);
    const std::vector<Stage> stages = stages_of(infos.at(info.at("plan").get<std::string>()));
    const std::vector<Phase> phases = phases_of(stages, info.at("rewarm_steps"), info.at("loop_at"));
    const auto warmdown = make_plugin<Schedule>(
        MLG_SCHEDULE, "warmdown",
        fmt::format("fraction = {:.17g}\nmin_factor = {:.17g}\nby = 'budget'",
                    info.at("warmdown_frac").get<double>(), info.at("min_lr").get<double>()));
    const std::vector<double> rows = fixture.doubles(name);
    std::size_t phase = 0;
    LrRewarmup rewarm;
    for (std::size_t at = 0; at < rows.size(); at += 6) {
      const auto step = static_cast<std::int64_t>(rows[at]);
      const double share = rows[at + 2];
      EXPECT_NEAR(share, std::clamp(rows[at + 1] / info.at("total").get<double>(), 0.0, 1.0), kTolerance);
      const std::size_t now = phase_at(phases, phase, step, share);
      if (now != phase && phases[now].rewarm_steps > 0 && step > 0) rewarm = {step, phases[now].rewarm_steps};
      phase = now;
      EXPECT_EQ(phases[phase].sequence_length, static_cast<std::int64_t>(rows[at + 3])) << "step " << step;
      const double multiplier = warmdown->rate({step, 0, share, 0}, 1.0).lr * rewarm.factor(step);
      EXPECT_NEAR(multiplier, rows[at + 4], kTolerance) << "step " << step;
      EXPECT_EQ(phases[phase].layer_order == LayerOrderKind::looped, rows[at + 5] != 0) << "step " << step;
    }
    ++runs;
  }
  EXPECT_GT(runs, 0);
}

}  // namespace
}  // namespace mulligan::seq_schedule_golden_test
