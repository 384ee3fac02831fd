// The phases of a configuration: those of its model, those of its [[phase]] rows, and what is refused.
#include "framework/config/phase_config.h"

#include <gtest/gtest.h>

#include "framework/config/config_report.h"
#include "tests/support/sentence.h"
#include "tests/support/small_config.h"

namespace mulligan::config_phase_test {
namespace {

constexpr const char* kLoop = "[model.loop]\nfirst = 1\nlast = 2\nextra_passes = 1\n";

LoadedConfig load(const std::string& more, const std::vector<std::string>& set = {}) {
  std::vector<std::string> sets = {"train.sequence_length=32"};
  sets.insert(sets.end(), set.begin(), set.end());
  return small_config(sets, more);
}
std::vector<Phase> phases(const std::string& more, const std::vector<std::string>& set = {}) {
  return load(more, set).config.phases;
}
std::string refusal(const std::string& more) {
  return sentence_of(ExitCode::bad_configuration, [&] { load(more); });
}

TEST(Phases, DepthRecurrenceIsThePlainAndTheLoopedOne) {
  const std::vector<Phase> later = phases(kLoop, {"model.loop.start_fraction=0.35"});
  ASSERT_EQ(later.size(), 2u);
  EXPECT_EQ(later[0].name, "plain");
  EXPECT_EQ(later[1].name, "looped");
  EXPECT_EQ(later[1].layer_order, LayerOrderKind::looped);
  EXPECT_EQ(phase_at(later, 0, 5, 0.3499), 0u);
  EXPECT_EQ(phase_at(later, 0, 5, 0.35), 1u);
  EXPECT_EQ(phase_at(later, 1, 5, 0.1), 1u) << "no phase comes back";

  const std::vector<Phase> at_once = phases(kLoop);
  ASSERT_EQ(at_once.size(), 1u);
  EXPECT_EQ(at_once[0].name, "looped");
  const std::vector<Phase> never = phases(kLoop, {"model.loop.start_fraction=1.0"});
  ASSERT_EQ(never.size(), 1u);
  EXPECT_EQ(never[0].name, "plain");
}

constexpr const char* kThree = R"(
[[phase]]
name = "short"
until_steps = 3
layer_order = "plain"
sequence_length = 16
[[phase]]
until_fraction = 0.6
layer_order = "plain"
compute_dtype = "bf16"
lr_multiplier = 0.5
[[phase]]
[phase.backend]
plugin = "cuda"
device = "emulated"
)";

TEST(Phases, RowsSayWhatTheyChangeAndTakeTheRestFromTheRun) {
  LoadedConfig loaded = load(std::string(kLoop) + kThree);
  const std::vector<Phase>& made = loaded.config.phases;
  ASSERT_EQ(made.size(), 3u);
  EXPECT_EQ(made[0].name, "short");
  EXPECT_EQ(made[0].sequence_length, 16);
  EXPECT_EQ(made[0].compute_dtype, MLG_F32);
  EXPECT_EQ(made[1].name, "phase_2");
  EXPECT_EQ(made[1].compute_dtype, MLG_BF16);
  EXPECT_EQ(made[1].sequence_length, 32);
  EXPECT_EQ(made[1].lr_multiplier, 0.5);
  EXPECT_EQ(made[2].layer_order, LayerOrderKind::looped);
  ASSERT_TRUE(made[2].backend);
  EXPECT_EQ(made[2].backend->plugin, "cuda");
  EXPECT_EQ(made[2].backend->section, "phase.3.backend");
  EXPECT_EQ(loaded.config.phases.back().compute_dtype, MLG_F32);
  EXPECT_EQ(phase_at(made, 0, 3, 0.1), 1u);
  EXPECT_EQ(phase_at(made, 0, 3, 0.7), 2u) << "two may end at once";

  // Printed, it reads back to the same settings.
  const std::string printed = print_resolved(loaded);
  EXPECT_TRUE(contains(printed, "[phase.backend]\nplugin = \"cuda\""));
  EXPECT_TRUE(diff_configs(loaded, parse_run_config(printed, "again.toml")).empty());
  EXPECT_EQ(parse_saved_config(printed, "saved").config.phases[2].backend->plugin, "cuda");
}

TEST(Phases, WhatCannotBeMeantIsRefused) {
  const std::string row = "[[phase]]\n", seconds = "until_seconds = 3.0\n", steps = "until_steps = 3\n";
  EXPECT_TRUE(contains(refusal(row + row), "never ends"));
  EXPECT_TRUE(contains(refusal(row + steps), "is the last one"));
  EXPECT_TRUE(contains(refusal(row + steps + row + steps + row), "no later than"));
  EXPECT_TRUE(contains(refusal(row + seconds + row + seconds + row), "no later than"));
  EXPECT_TRUE(
      contains(refusal(row + steps + "name = \"a\"\n" + row + "name = \"a\"\n"), "name of an earlier"));
  EXPECT_TRUE(contains(refusal(row + "layer_order = \"looped\"\n"), "extra_passes is 0"));
  EXPECT_TRUE(contains(refusal(kLoop + row + "layer_order = \"plain\"\n"), "is scored looped"));
  EXPECT_TRUE(contains(refusal(kLoop + std::string("start_fraction = 0.5\n") + row), "both"));
  EXPECT_TRUE(contains(refusal(row + "layer_order = \"twice\"\n"), "phase.layer_order"));
  EXPECT_TRUE(contains(refusal(row + "[phase.backend]\npath = \"/tmp/other.so\"\n"), "--plugin-path"));
  EXPECT_TRUE(contains(refusal("[phase]\nname = \"a\"\n"), "[[phase]]"));
}

TEST(Phases, RowsSetBatchScheduleNoiseAndOptimiser) {
  const std::string rows = R"(
[[phase]]
until_seconds = 30.0
micro_batches = 4
lr_policy = "independent"
noise = "norm"
noise_factor = 3.0
[[phase]]
lr_policy = "rejoin"
reset_optimizer = true
)";
  const LoadedConfig loaded = load("[noise]\nmode = \"relative\"\nsigma = 0.5\n" + rows);
  const std::vector<Phase>& made = loaded.config.phases;
  EXPECT_EQ(made[0].until.seconds, 30);
  EXPECT_EQ(phase_at(made, 0, 1, 0.5, 29.9), 0u);
  EXPECT_EQ(phase_at(made, 0, 1, 0.5, 30.0), 1u);
  EXPECT_EQ(made[0].micro_batches, 4);
  EXPECT_EQ(made[1].micro_batches, 1) << "train.micro_batches";
  EXPECT_EQ(made[0].lr_policy, LrPolicy::independent);
  EXPECT_EQ(made[1].lr_policy, LrPolicy::rejoin);
  EXPECT_FALSE(made[0].reset_optimizer);
  EXPECT_TRUE(made[1].reset_optimizer);
  EXPECT_EQ(made[0].noise, NoiseMode::norm);
  EXPECT_EQ(made[0].noise_factor, 3);
  EXPECT_EQ(made[1].noise, NoiseMode::relative) << "noise.mode";
  EXPECT_TRUE(made[0].declared);
  EXPECT_FALSE(phases("").front().declared);
  EXPECT_EQ(phases("", {"noise.mode=anneal"}).front().noise, NoiseMode::anneal);
  const std::string printed = print_resolved(loaded);
  EXPECT_TRUE(diff_configs(loaded, parse_run_config(printed, "again.toml")).empty()) << printed;
}

// until_fraction ends where the share is reached, through_fraction where it is passed.
TEST(Phases, APhaseMayHoldThroughAShare) {
  const std::string rows =
      "[[phase]]\nuntil_fraction = 0.35\n[[phase]]\nthrough_fraction = 0.35\n[[phase]]\n"
      "through_fraction = 0.7\n[[phase]]\nrewarm_steps = 32\nskip_batches = 2\n";
  const LoadedConfig loaded = load(rows);
  const std::vector<Phase>& made = loaded.config.phases;
  EXPECT_EQ(phase_at(made, 0, 0, 0.3499), 0u);
  EXPECT_EQ(phase_at(made, 0, 0, 0.35), 1u);
  EXPECT_EQ(phase_at(made, 0, 0, 0.3501), 2u);
  EXPECT_EQ(phase_at(made, 0, 0, 0.7), 2u);
  EXPECT_EQ(phase_at(made, 0, 0, 1.0), 3u);
  EXPECT_EQ(made[3].rewarm_steps, 32);
  EXPECT_EQ(made[3].skip_batches, 2);
  EXPECT_EQ(made[0].rewarm_steps, 0);
  EXPECT_TRUE(diff_configs(loaded, parse_run_config(print_resolved(loaded), "again.toml")).empty());
  const std::string row = "[[phase]]\n", through = "through_fraction = 0.5\n";
  EXPECT_TRUE(
      contains(refusal(row + through + "until_fraction = 0.5\n" + row), "say its share of the budget once"));
  EXPECT_TRUE(contains(refusal(row + "through_fraction = 1.0\n" + row), "holds through all"));
  EXPECT_TRUE(contains(refusal(row + through + row + "until_fraction = 0.5\n" + row), "no later than"));
  EXPECT_TRUE(contains(refusal(row + through + row + through + row), "no later than"));
  EXPECT_TRUE(contains(refusal(row + through), "is the last one"));
}

TEST(Phases, SchedulesThatHaveEndedDoNotContinue) {
  const std::string own = "[[phase]]\nuntil_steps = 3\nlr_policy = \"independent\"\n";
  EXPECT_TRUE(contains(refusal(own + "[[phase]]\n"), "say \"rejoin\""));
  EXPECT_EQ(phases(own + "[[phase]]\nlr_policy = \"independent\"\n").size(), 2u);
}

constexpr const char* kMix = R"(
[[data.mix]]
name = "general"
train = "a"
weight = 3.0
[[data.mix]]
name = "maths"
train = "b"
)";

TEST(Phases, AMixHasWeightsByPhase) {
  const std::vector<std::string> no_train = {"data.train=''"};
  const LoadedConfig loaded =
      load(std::string(kMix) + "[[phase]]\nuntil_steps = 3\n[[phase]]\nmix_weights = [1.0, 0.0]\n", no_train);
  EXPECT_EQ(loaded.config.phases[0].mix_weights, (std::vector<double>{3, 1}));
  EXPECT_EQ(loaded.config.phases[1].mix_weights, (std::vector<double>{1, 0}));
  EXPECT_EQ(training_patterns(loaded.config.data), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(diff_configs(loaded, parse_run_config(print_resolved(loaded), "again.toml")).empty());
  EXPECT_EQ(load(kMix, {"data.train=''", "data.mix.1.weight=5"}).config.phases[0].mix_weights,
            (std::vector<double>{3, 5}));
  EXPECT_TRUE(contains(refusal(kMix), "both name training shards"));
  const auto refused = [&](const std::string& more) { return refusal_of([&] { load(more, no_train); }); };
  EXPECT_TRUE(contains(refused(std::string(kMix) + "[[phase]]\nmix_weights = [1.0]\n"), "1 mix_weights"));
  EXPECT_TRUE(contains(refused(std::string(kMix) + "[[phase]]\nmix_weights = [0.0, 0.0]\n"), "read nothing"));
  EXPECT_TRUE(
      contains(refused(std::string(kMix) + "[[data.mix]]\nname = \"maths\"\ntrain = \"c\"\n"), "name each"));
}

TEST(Phases, NoiseBeforeAClipOfEachRanksOwnIsRefused) {
  const std::vector<std::string> clip = {"train.clip_norm=1.0", "train.clip_order=before_reduction",
                                         "noise.mode=relative"};
  EXPECT_THROW(load("", clip), Error);
  std::vector<std::string> after = clip;
  after.push_back("noise.order=after_clip");
  EXPECT_NO_THROW(load("", after));
  EXPECT_THROW(load("", {"noise.from_fraction=0.5", "noise.until_fraction=0.5"}), Error);
}

}  // namespace
}  // namespace mulligan::config_phase_test
