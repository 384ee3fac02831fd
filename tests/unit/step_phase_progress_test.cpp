// The progress that a phase's schedule sees, and the strength of noise.
#include "framework/step/phase_progress.h"

#include <gtest/gtest.h>

#include <cmath>

#include "framework/step/gradient_noise.h"

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

TEST(PhaseProgress, AContinuedPhaseSeesTheRun) {
  const RunConfig config = two_phases({100, 0, 0}, LrPolicy::continued, LrPolicy::continued);
  EXPECT_EQ(phase_progress(config, 1, {100, 0.2, 3.0, 0.4}, {250, 500, 0.5, 1.0}, 4.0).step, 250);
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

}  // namespace
}  // namespace mulligan::step_phase_progress_test
