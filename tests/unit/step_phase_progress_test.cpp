// How far a phase is and how long a run of steps takes; the loss scale of fp16.
#include "framework/step/phase_progress.h"

#include <gtest/gtest.h>

#include <cmath>

#include "framework/step/gradient_noise.h"
#include "framework/step/loss_scaler.h"
#include "tests/support/sentence.h"
#include "tests/unit/config_testing.h"

namespace mulligan::step_phase_progress_test {
namespace {

Phase phase_until(PhaseEnd end, LrPolicy policy) {
  Phase phase;
  phase.until = end;
  phase.lr_policy = policy;
  return phase;
}

RunConfig two_phases(PhaseEnd first, LrPolicy one, LrPolicy two) {
  RunConfig config;
  config.train.steps = 500;
  config.phases = {phase_until(first, one), phase_until({}, two)};
  return config;
}

// Experiment C: 100 steps of a schedule of their own, then the run's schedule at the run's step.
TEST(PhaseProgress, AnIndependentPhaseRunsFromNoneToAll) {
  const RunConfig config = two_phases({100, 0, 0}, LrPolicy::independent, LrPolicy::rejoin);
  const mlg_progress last = phase_progress(config, 0, {}, {99, 500, 99.0 / 500, 0.4}, 0);
  EXPECT_EQ(last.step, 99);
  EXPECT_EQ(last.total_steps, 100);
  EXPECT_DOUBLE_EQ(last.budget_fraction, 0.99);
  const mlg_progress of_run{100, 500, 0.2, 0.4};
  const mlg_progress rejoined = phase_progress(config, 1, {100, 0.2, 3.0, 0.4}, of_run, 3.0);
  EXPECT_EQ(rejoined.step, 100);
  EXPECT_EQ(rejoined.total_steps, 500);
  EXPECT_EQ(rejoined.budget_fraction, 0.2);
  const RunConfig continued = two_phases({100, 0, 0}, LrPolicy::continued, LrPolicy::continued);
  EXPECT_EQ(phase_progress(continued, 1, {100, 0.2, 3.0, 0.4}, {250, 500, 0.5, 1.0}, 4.0).step, 250);
}

TEST(PhaseProgress, TheSecondIndependentPhaseStartsAnew) {
  const RunConfig config = two_phases({100, 0, 0}, LrPolicy::independent, LrPolicy::independent);
  const PhaseStart start{100, 0.2, 3.0, 0.4};
  const mlg_progress first = phase_progress(config, 1, start, {100, 500, 0.2, 0.4}, 3.0);
  EXPECT_EQ(first.step, 0);
  EXPECT_EQ(first.total_steps, 400);
  EXPECT_EQ(first.budget_fraction, 0);
  EXPECT_EQ(first.epoch, 0);
  const mlg_progress half = phase_progress(config, 1, start, {300, 500, 0.6, 1.0}, 9.0);
  EXPECT_DOUBLE_EQ(half.budget_fraction, 0.5);
  EXPECT_DOUBLE_EQ(half.epoch, 0.6);
}

TEST(LrRewarmup, GrowsFromOneStepOn) {
  EXPECT_EQ(LrRewarmup{}.factor(0), 1);
  const LrRewarmup four{10, 4};
  EXPECT_EQ(four.factor(9), 1);
  EXPECT_EQ(four.factor(10), 0.25);
  EXPECT_EQ(four.factor(12), 0.75);
  EXPECT_EQ(four.factor(13), 1);
  EXPECT_EQ(four.factor(1000), 1);
}

TEST(PhaseProgress, TheNearestLimitCounts) {
  const RunConfig config = two_phases({100, 0.5, 8.0}, LrPolicy::independent, LrPolicy::rejoin);
  const auto share = [&](std::int64_t step, double fraction, double seconds) {
    return phase_progress(config, 0, {}, {step, 500, fraction, 0}, seconds).budget_fraction;
  };
  EXPECT_DOUBLE_EQ(share(50, 0.1, 1.0), 0.5);
  EXPECT_DOUBLE_EQ(share(10, 0.4, 1.0), 0.8);
  EXPECT_DOUBLE_EQ(share(10, 0.1, 6.0), 0.75);
  EXPECT_EQ(share(10, 0.1, 80.0), 1.0);
}

TEST(NoiseSigma, FollowsModeWindowAndFactor) {
  NoiseConfig noise;
  noise.sigma = 0.3;
  noise.from_fraction = 0.1;
  noise.until_fraction = 0.2;
  Phase phase;
  EXPECT_EQ(noise_sigma(noise, phase, 5, 0.15), 0) << "off";
  phase.noise = NoiseMode::relative;
  phase.noise_factor = 2;
  EXPECT_DOUBLE_EQ(noise_sigma(noise, phase, 5, 0.15), 0.6);
  EXPECT_EQ(noise_sigma(noise, phase, 5, 0.0999), 0);
  EXPECT_EQ(noise_sigma(noise, phase, 5, 0.2), 0) << "the window's end is not part of it";
  phase.noise = NoiseMode::anneal;
  EXPECT_DOUBLE_EQ(noise_sigma(noise, phase, 0, 0.15), std::sqrt(0.6));
  EXPECT_DOUBLE_EQ(noise_sigma(noise, phase, 99, 0.15), std::sqrt(0.6 / std::pow(100.0, 0.55)));
  phase.noise = NoiseMode::bf16_round;
  EXPECT_EQ(noise_sigma(noise, phase, 5, 0.15), 1);
  phase.noise_factor = 0;
  EXPECT_EQ(noise_sigma(noise, phase, 5, 0.15), 0);
  noise.until_fraction = 1;
  phase.noise = NoiseMode::relative;
  phase.noise_factor = 1;
  EXPECT_DOUBLE_EQ(noise_sigma(noise, phase, 5, 1.0), 0.3) << "to the end";
}

// As pull request 1886 ran: 97.5 ms a step, then with depth recurrence 143.5.
RunConfig record() {
  RunConfig config;
  config.train.budget_seconds = 600;
  config.train.reserve_seconds = 0.5;
  Phase plain, looped;
  plain.until.fraction = 0.35;
  plain.step_seconds = 0.0975;
  looped.step_seconds = 0.1435;
  config.phases = {plain, looped};
  return config;
}

TEST(StepSeconds, ARunIsAsLongAsItsStepsSay) {
  StepSeconds counted(record());
  // Its author's seeds made 4,864, 4,868 and 4,866 steps.
  EXPECT_EQ(counted.phase_steps(),
            (std::vector<std::int64_t>{2153, 2715}));  // 0.35 * 599.5 / 0.0975 = 2152.05
  EXPECT_EQ(counted.total_steps(), 4868);
  EXPECT_DOUBLE_EQ(counted.seconds(2153), 2153 * 0.0975);
  EXPECT_DOUBLE_EQ(counted.seconds(2155), 2153 * 0.0975 + 2 * 0.1435);
  EXPECT_DOUBLE_EQ(counted.fraction(2155), (2153 * 0.0975 + 2 * 0.1435) / 599.5);
  EXPECT_DOUBLE_EQ(counted.seconds(10), 10 * 0.0975);  // an earlier point again
  EXPECT_FALSE(counted.ended(4867));
  EXPECT_TRUE(counted.ended(4868));
}

TEST(StepSeconds, StepsAreALimitTooAndAShareThatIsHeldThroughIsPassed) {
  RunConfig config = record();
  config.train.steps = 100;
  EXPECT_EQ(StepSeconds(config).phase_steps(), (std::vector<std::int64_t>{100, 0}));
  config = record();
  config.train.budget_seconds = 10.5;
  config.phases[0].until = {0, 0, 0, 0.5};
  config.phases[0].step_seconds = config.phases[1].step_seconds = 1;
  EXPECT_EQ(StepSeconds(config).phase_steps(),
            (std::vector<std::int64_t>{6, 4}));  // 5 of 10 are not more than half
}

TEST(StepSeconds, AreOfAllPhasesAndOfABudget) {
  const auto refusal = [](const std::string& first, const std::string& second,
                          const std::vector<std::string>& sets) {
    return error_of([&] {
      small_config(sets, "[[phase]]\nname = \"a\"\nuntil_steps = 5\n" + first +
                             "\n[[phase]]\nname = \"b\"\n" + second);
    });
  };
  const std::vector<std::string> budget = {"train.budget_seconds=60"};
  EXPECT_TRUE(contains(refusal("step_seconds = 1", "", budget), "the phase 'b' has no step_seconds"));
  EXPECT_TRUE(contains(refusal("step_seconds = 1", "step_seconds = 2", {}), "set train.budget_seconds"));
  EXPECT_TRUE(contains(refusal("step_seconds = 1e-7", "step_seconds = 2", budget), "raise it"));
  const LoadedConfig counted =
      small_config(budget, "[[phase]]\nuntil_steps = 5\nstep_seconds = 1\n[[phase]]\nstep_seconds = 0.5\n");
  EXPECT_TRUE(StepSeconds::counts(counted.config));
  EXPECT_FALSE(StepSeconds::counts(small_config(budget).config));
}

LossScaleConfig config_of(LossScaleMode mode) {
  LossScaleConfig config;
  config.mode = mode;
  return config;
}

Phase phase_in(DType compute) {
  Phase phase;
  phase.compute_dtype = compute;
  return phase;
}

TEST(LossScaler, DynamicDoublesAfterTwoThousandUpdatesAndHalvesWhereOneIsSkipped) {
  LossScaler scaler(config_of(LossScaleMode::dynamic));
  const Phase phase = phase_in(MLG_F16);
  EXPECT_EQ(scaler.scale(phase), 65536);
  for (int update = 0; update < 1999; ++update) EXPECT_TRUE(scaler.note(true));
  EXPECT_EQ(scaler.scale(phase), 65536);
  EXPECT_TRUE(scaler.note(false));
  EXPECT_EQ(scaler.scale(phase), 32768) << "halved, and the count begins anew";
  for (int update = 0; update < 1999; ++update) scaler.note(true);
  EXPECT_EQ(scaler.scale(phase), 32768);
  scaler.note(true);
  EXPECT_EQ(scaler.scale(phase), 65536);
  EXPECT_EQ(scaler.state().skipped_updates, 1);
}

TEST(LossScaler, EndsAtOneAndAtTheLargestScaleAndAStaticOneStays) {
  LossScaleConfig config = config_of(LossScaleMode::dynamic);
  config.initial = 4;
  config.growth_every = 1;
  LossScaler scaler(config), fixed(config_of(LossScaleMode::constant));
  EXPECT_TRUE(scaler.note(false));
  EXPECT_TRUE(scaler.note(false));
  EXPECT_EQ(scaler.state().scale, 1);
  EXPECT_FALSE(scaler.note(false)) << "no lower scale is left";
  EXPECT_EQ(scaler.state().skipped_updates, 2);
  for (int update = 0; update < 40; ++update) scaler.note(true);
  EXPECT_EQ(scaler.state().scale, LossScaler::largest);
  for (int update = 0; update < 5000; ++update) EXPECT_TRUE(fixed.note(true));
  EXPECT_FALSE(fixed.note(false));
  EXPECT_EQ(fixed.state().scale, 65536);
}

TEST(LossScaler, AutoScalesFp16Alone) {
  for (const auto& [mode, fp16, fp32] :
       {std::tuple(LossScaleMode::automatic, true, false), std::tuple(LossScaleMode::off, false, false),
        std::tuple(LossScaleMode::constant, true, true), std::tuple(LossScaleMode::dynamic, true, true)}) {
    const LossScaleConfig config = config_of(mode);
    EXPECT_EQ(LossScaler::scales(config, phase_in(MLG_F16)), fp16);
    EXPECT_EQ(LossScaler::scales(config, phase_in(MLG_F32)), fp32);
    EXPECT_EQ(LossScaler::scales(config, phase_in(MLG_BF16)), fp32);
    EXPECT_EQ(LossScaler(config).scale(phase_in(MLG_F32)), fp32 ? 65536 : 1);
  }
}

TEST(LossScaler, AStateIsContinuedAndADamagedOneRefused) {
  LossScaler scaler(config_of(LossScaleMode::dynamic));
  scaler.note(true);
  scaler.note(false);
  LossScaler again(config_of(LossScaleMode::dynamic));
  again.restore(scaler.state());
  EXPECT_EQ(again.state(), scaler.state());
  for (const double scale : {0.0, 3.0, -2.0, 0.5, 1e300, std::nan("")}) {
    EXPECT_TRUE(refuses([&] { again.restore({scale, 0, 0}); }, "loss scale")) << scale;
  }
}

}  // namespace
}  // namespace mulligan::step_phase_progress_test
