// Training with what plugins may ask for beyond a rate: evaluation weights of an optimiser, and schedules
// that change the momentum or the batch. Resumed runs are compared with != and no tolerance.
#include <gtest/gtest.h>

#include "framework/checkpoint/checkpoint_folder.h"
#include "tests/end_to_end/tiny_run.h"
#include "tests/support/built.h"
#include "tests/support/plugins.h"
#include "tests/support/sentence.h"

namespace mulligan::end_to_end::plugin_training_test {
namespace {

namespace fs = std::filesystem;

std::string refusal(const Overrides& overrides) {
  return refusal_of(ExitCode::bad_configuration, [&] { tiny().train(overrides); });
}

// Trains straight through and, from the checkpoint of step `at`, again: losses, weights and score are
// the same bits.
void expect_resumes_exactly(const Overrides& overrides, std::int64_t at) {
  const Overrides keeping =
      with(overrides, {fmt::format("checkpoint.every_steps={}", at), "checkpoint.keep=9"});
  const std::string straight = tiny().next_directory(), resumed = tiny().next_directory();
  const RunResult a = tiny().train_in(straight, keeping);
  const RunResult b = tiny().train_in(resumed, overrides,
                                      (fs::path(straight) / "checkpoints" / checkpoint_name(at)).string());
  ASSERT_EQ(b.first_step, at);
  expect_same_run(straight, a, resumed, b);
}

// A run's weights are the tensors of that name of its checkpoint, and others than the masters.
void expect_scored(const std::string& directory, const std::string& prefix) {
  const SafetensorsFile saved(fs::path(directory) / "weights.safetensors"),
      state(find_checkpoint(directory).path / "tensors.safetensors");
  bool any_differs = false;
  for (const StoredTensor& tensor : saved.tensors()) {
    EXPECT_TRUE(std::ranges::equal(tensor.bytes, state.at(prefix + tensor.name).bytes)) << tensor.name;
    any_differs |= !std::ranges::equal(tensor.bytes, state.at("master/" + tensor.name).bytes);
  }
  EXPECT_TRUE(any_differs) << "the masters are what was scored";
}

Overrides schedule_free() {
  return {"train.steps=20", "optimizer.rest.plugin=schedule_free_adamw", "optimizer.rest.lr=0.02",
          "optimizer.matrices.plugin=schedule_free_adamw", "optimizer.matrices.lr=0.02"};
}

TEST(ScheduleFree, LearnsAndIsScoredByItsAverage) {
  const std::string directory = tiny().next_directory();
  const RunResult result = tiny().train_in(directory, with(schedule_free(), {"train.steps=40"}));
  EXPECT_LT(result.validation->val_loss_nats, result.initial_loss_nats - 1.0);
  // The weights file holds what was scored.
  LoadedConfig loaded = tiny().config(with(schedule_free(), {"run.directory=" + directory}));
  const EvalResult again =
      evaluate_weights(loaded, test_plugin_host(), fs::path(directory) / "weights.safetensors", {nullptr});
  EXPECT_EQ(again.val_loss_nats, result.validation->val_loss_nats);
  expect_scored(directory, "evaluation/");
}

// All groups with evaluation weights; and one with them, one without, with bf16 kernels, which read a copy.
TEST(ScheduleFree, AResumedRunIsTheSameBitForBit) {
  expect_resumes_exactly(schedule_free(), 8);
  expect_resumes_exactly({"train.steps=12", "optimizer.rest.plugin=schedule_free_adamw",
                          "optimizer.rest.lr=0.02", "train.compute_dtype=bf16"},
                         6);
}

TEST(ScheduleFree, EvaluatingInBetweenChangesNothing) {
  const RunResult plain = tiny().train(schedule_free());
  const RunResult validated = tiny().train(with(schedule_free(), {"train.validate_every=3"}));
  EXPECT_EQ(plain.step_loss_nats, validated.step_loss_nats);
  EXPECT_EQ(plain.validation->val_loss_nats, validated.validation->val_loss_nats);
}

// Ahead from the 4th gradient to the 14th; an average from the 10th update to the 17th.
Overrides looking_ahead() {
  return {"train.steps=20",         "wrapper.plugin=ema_nesterov",
          "wrapper.from_step=3",    "wrapper.until_step=14",
          "wrapper.decay=0.8",      "wrapper.rate_of=rest",
          "schedule.plugin=cosine", "ema.decay=0.75",
          "ema.from_step=10",       "ema.until_step=18",
          "ema.blend=0.6",          "ema.exclude=[\"tok_emb.*\"]"};
}

// Before, at and after each of these steps; with a copy for the kernels, and with masters that are bf16.
TEST(Wrapper, AResumedRunIsTheSameBitForBit) {
  for (const std::int64_t at : {2, 9, 10, 15}) expect_resumes_exactly(looking_ahead(), at);
  expect_resumes_exactly(
      with(looking_ahead(), {"train.compute_dtype=bf16", "parameters.1.master_dtype=bf16"}), 12);
}

TEST(Wrapper, OfNoLookAheadItChangesNoWeight) {
  const Overrides none = {"train.steps=12"};
  const RunResult plain = tiny().train(none),
                  wrapped = tiny().train(with(
                      none, {"wrapper.plugin=ema_nesterov", "wrapper.from_step=0", "wrapper.lookahead=0.0"}));
  EXPECT_EQ(plain.step_loss_nats, wrapped.step_loss_nats);
  EXPECT_EQ(plain.validation->val_loss_nats, wrapped.validation->val_loss_nats);
}

TEST(Wrapper, ScoresAreOfWeightsAtRest) {
  const std::string directory = tiny().next_directory();
  const Overrides ahead = {"train.steps=12", "wrapper.plugin=ema_nesterov", "wrapper.from_step=0",
                           "wrapper.lookahead=2.0"};
  const RunResult plain = tiny().train_in(directory, ahead);
  const RunResult validated = tiny().train(with(ahead, {"train.validate_every=3"}));
  EXPECT_EQ(plain.step_loss_nats, validated.step_loss_nats);
  EXPECT_EQ(plain.validation->val_loss_nats, validated.validation->val_loss_nats);
  expect_scored(directory, "rest/");
}

TEST(Wrapper, WhatCannotBeDoneIsRefused) {
  const Overrides wrapped = {"wrapper.plugin=ema_nesterov"};
  EXPECT_TRUE(contains(refusal(with(wrapped, {"wrapper.rate_of=head"})),
                       "rate_of = \"head\" names no [optimizer.NAME]"));
  EXPECT_TRUE(contains(refusal(with(schedule_free(), wrapped)), "[wrapper]: it says what is scored"));
  EXPECT_TRUE(
      contains(refusal(with(schedule_free(), {"ema.decay=0.9"})), "[ema]: decay is 0.9, but an optimiser"));
  EXPECT_TRUE(
      contains(refusal({"ema.decay=0.75", "ema.exclude=[\"head.*\"]"}), "which matches no parameter"));
}

// An average that has not begun leaves the weights to be scored; one that follows in an instant is the weights.
TEST(LateAverage, IsTheWeightsUntilItBegins) {
  const Overrides steps = {"train.steps=8"};
  const RunResult plain = tiny().train(steps);
  for (const Overrides& late :
       {Overrides{"ema.decay=0.75", "ema.from_step=9"}, Overrides{"ema.decay=0.75", "ema.from_step=8"},
        Overrides{"ema.decay=0.75", "ema.blend=0.0"}, Overrides{"ema.decay=0.75", "ema.exclude=[\"*\"]"}}) {
    const RunResult result = tiny().train(with(steps, late));
    EXPECT_EQ(result.validation->val_loss_nats, plain.validation->val_loss_nats) << late.back();
  }
  const RunResult blended = tiny().train(with(steps, {"ema.decay=0.75", "ema.from_step=3", "ema.blend=0.6"})),
                  whole = tiny().train(with(steps, {"ema.decay=0.75", "ema.from_step=3"}));
  EXPECT_NE(blended.validation->val_loss_nats, plain.validation->val_loss_nats);
  EXPECT_NE(blended.validation->val_loss_nats, whole.validation->val_loss_nats);
}

// What every update follows is what it was before there were other averages.
TEST(LateAverage, OfAllUpdatesIsThePlainOne) {
  const RunResult plain = tiny().train({"train.steps=8", "ema.decay=0.75"}),
                  blended = tiny().train({"train.steps=8", "ema.decay=0.75", "ema.until_step=99"});
  EXPECT_NEAR(plain.validation->val_loss_nats, blended.validation->val_loss_nats, 1e-5);
}

// normuon, muon_h and soap_muon keep what muon keeps, and their own.
TEST(OptimisersOfMatrices, AResumedRunIsTheSameBitForBit) {
  const Overrides steps = {"train.steps=12", "optimizer.matrices.lr=0.02",
                           "optimizer.matrices.compute_dtype=bf16"};
  for (const char* optimizer : {"normuon", "muon_h"}) {
    expect_resumes_exactly(with(steps, {std::string("optimizer.matrices.plugin=") + optimizer}), 5);
  }
  expect_resumes_exactly(with(steps, of_single_matrices("muon_h")), 5);
  expect_resumes_exactly(
      with(with(steps, of_single_matrices("soap_muon")), {"optimizer.matrices.trust=true"}), 5);
}

Overrides flawed_schedule(const std::string& how, const std::string& from_step, const std::string& factor) {
  return {"train.steps=12",
          "train.micro_batches=4",
          "schedule.plugin=flawed_schedule",
          "schedule.path=" + (test_support::built("flawed_plugins") / "mulligan_flawed_schedule.so").string(),
          "schedule.how=" + how,
          "schedule.from_step=" + from_step,
          "schedule.factor=" + factor};
}

TEST(Schedules, TheBatchFactorChangesTheTokensOfAStep) {
  const RunResult whole = tiny().train(flawed_schedule("not_at_all", "1", "1"));
  const RunResult half = tiny().train(flawed_schedule("batch", "7", "0.5"));
  const RunResult twice = tiny().train(flawed_schedule("batch", "7", "2"));
  EXPECT_EQ(whole.tokens, 12 * 256);
  EXPECT_EQ(half.tokens, 6 * 256 + 6 * 128);
  EXPECT_EQ(twice.tokens, 6 * 256 + 6 * 512);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(whole.step_loss_nats[i], half.step_loss_nats[i]) << i;
    EXPECT_EQ(whole.step_loss_nats[i], twice.step_loss_nats[i]) << i;
  }
  // The loss of a step is the mean over its own tokens: half a sum would be near 3 nats less.
  EXPECT_NEAR(half.step_loss_nats[6], whole.step_loss_nats[6], 0.5);
  EXPECT_NE(half.step_loss_nats[7], whole.step_loss_nats[7]);
  expect_resumes_exactly(flawed_schedule("batch", "4", "0.5"), 6);
}

TEST(Schedules, ABatchThatCannotBeIsRefused) {
  EXPECT_TRUE(contains(refusal(flawed_schedule("batch", "7", "0.1")),
                       "of the 4 micro-batches of a step; raise train.micro_batches"));
  // An optimiser with a schedule of its own wants another batch than the others.
  Overrides own;
  for (std::string key : flawed_schedule("batch", "1", "0.5")) {
    own.push_back(key.starts_with("schedule.") ? "optimizer.rest." + key : key);
  }
  EXPECT_TRUE(contains(refusal(own), "all groups share one batch"));
}

TEST(Schedules, TheMomentumFactorReachesTheOptimisers) {
  const RunResult plain = tiny().train(flawed_schedule("not_at_all", "1", "1"));
  const RunResult less = tiny().train(flawed_schedule("momentum", "4", "0.5"));
  EXPECT_EQ(plain.step_loss_nats[3], less.step_loss_nats[3]) << "the loss before the first changed update";
  EXPECT_NE(plain.step_loss_nats[5], less.step_loss_nats[5]);
}

}  // namespace
}  // namespace mulligan::end_to_end::plugin_training_test
