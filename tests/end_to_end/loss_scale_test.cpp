// fp16 and the scale of the loss: fp32 does not see it, fp16 learns with it, a step that overflows is skipped and
// counted, and a checkpoint continues where it was.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "framework/checkpoint/checkpoint_folder.h"
#include "framework/core/file.h"
#include "tests/end_to_end/tiny_run.h"
#include "tests/support/plugins.h"
#include "tests/support/sentence.h"
#include "tests/support/test_device.h"

namespace mulligan::end_to_end::loss_scale_test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

const Overrides kSteps = {"train.steps=16", "train.log_every=1", "train.micro_batches=2", "ema.decay=0.9"};
const Overrides kFp16 = with(kSteps, {"train.compute_dtype=fp16"});

TEST(LossScale, ChangesNoBitInFp32) {
  const std::string plain = tiny().next_directory();
  const RunResult expected = tiny().train_in(plain, kSteps);
  for (const char* fused : {"true", "false"}) {
    const Overrides plainly = with(kSteps, {std::string("run.fused_kernels=") + fused});
    const std::string unscaled = tiny().next_directory();
    const std::vector<double> losses = tiny().train_in(unscaled, plainly).step_loss_nats;
    for (const char* mode : {"static", "dynamic"}) {
      SCOPED_TRACE(std::string(mode) + " " + fused);
      const std::string scaled = tiny().next_directory();
      const RunResult result = tiny().train_in(
          scaled, with(plainly, {std::string("loss_scale.mode=") + mode, "loss_scale.growth_every=5"}));
      EXPECT_EQ(result.step_loss_nats, losses);
      EXPECT_EQ(result_of(scaled).at("weights_sha256"), result_of(unscaled).at("weights_sha256"));
      EXPECT_EQ(result.step_loss_nats.front(), expected.step_loss_nats.front());
      const std::vector<Json> steps = events_of(scaled, "step");
      EXPECT_EQ(steps.front().at("loss_scale"), 65536);
      EXPECT_EQ(steps.back().at("loss_scale"), std::string(mode) == "static" ? 65536 : 8 * 65536);
      EXPECT_EQ(steps.back().at("steps_skipped"), 0);
    }
  }
  EXPECT_FALSE(events_of(plain, "step").front().contains("loss_scale"));
}

TEST(LossScale, Fp16LearnsWhatFp32Does) {
  const RunResult fp32 = tiny().train(with(kSteps, {"train.steps=60"}));
  const RunResult fp16 = tiny().train(with(kFp16, {"train.steps=60"}));
  EXPECT_NEAR(fp16.step_loss_nats.front(), fp32.step_loss_nats.front(), 2e-3);
  EXPECT_NEAR(fp16.validation->val_loss_nats, fp32.validation->val_loss_nats, 5e-2);
  EXPECT_LT(fp16.step_loss_nats.back(), 0.6 * fp16.step_loss_nats.front());
  EXPECT_NE(fp16.step_loss_nats, fp32.step_loss_nats) << "another precision";
}

// The largest scale overflows fp16 in the first steps: it is halved until the gradients fit.
const Overrides kOverflows = with(kFp16, {"loss_scale.initial=4294967296.0", "loss_scale.growth_every=6"});

TEST(LossScale, AStepThatOverflowsIsSkippedAndCounted) {
  const std::string directory = tiny().next_directory();
  const RunResult result =
      tiny().train_in(directory, with(kOverflows, {"train.steps=40", "checkpoint.at_end=true"}));
  const std::vector<Json> skipped = events_of(directory, "skipped_update"),
                          steps = events_of(directory, "step");
  ASSERT_GT(skipped.size(), 3u);
  double scale = 0x1p32;
  for (std::size_t i = 0; i < 4; ++i, scale /= 2) {
    EXPECT_EQ(skipped[i].at("step"), i + 1);
    EXPECT_EQ(skipped[i].at("loss_scale"), scale);
  }
  ASSERT_EQ(steps.size(), 40u);
  EXPECT_TRUE(steps.front().at("window_loss_nats").is_null()) << "no step was counted yet";
  EXPECT_EQ(steps.back().at("steps_skipped"), skipped.size());
  EXPECT_EQ(steps.back().at("steps_counted").get<std::size_t>(), 40 - skipped.size());
  EXPECT_EQ(result.step_loss_nats.size(), 40 - skipped.size());
  for (const double loss : result.step_loss_nats) EXPECT_TRUE(std::isfinite(loss));
  EXPECT_LT(result.step_loss_nats.back(), result.step_loss_nats.front());
  const Json account = result_of(directory).at("train_loss");
  EXPECT_EQ(account.at("steps_skipped"), skipped.size());
  EXPECT_EQ(account.at("window"), Json({0, 40}));
  bool grew = false;
  for (std::size_t i = 1; i < steps.size(); ++i)
    grew |= steps[i].at("loss_scale").get<double>() > steps[i - 1].at("loss_scale").get<double>();
  EXPECT_TRUE(grew) << "after six updates in a row";
  // Skipped updates leave no trace in the optimiser: its bias corrections count updates.
  const auto saved = list_checkpoints((fs::path(directory) / "checkpoints").string());
  ASSERT_FALSE(saved.empty());
  const Json manifest = Json::parse(read_file(saved.back().path / "manifest.json"));
  EXPECT_EQ(manifest.at("progress").at("optimizer_start_step"), skipped.size());
}

TEST(LossScale, ACheckpointContinuesItToTheBit) {
  const std::string whole = tiny().next_directory();
  const Overrides steps = with(kOverflows, {"train.steps=24", "train.log_every=3"});
  const RunResult expected = tiny().train_in(whole, steps);
  // A run of its own for each: a checkpoint that is due while another is being written is left out, so of those of
  // every step none is certain.
  for (const int step : {2, 7, 17}) {
    SCOPED_TRACE(step);
    const Overrides saving =
        with(steps, {"checkpoint.every_steps=" + std::to_string(step), "checkpoint.keep=50"});
    const std::string first = tiny().next_directory();
    tiny().train_in(first, saving);
    const std::string copy = only_checkpoint(tiny(), first, step);
    const RunResult again = tiny().train_in(copy, saving, "auto");
    EXPECT_EQ(again.first_step, step);
    EXPECT_EQ(again.final_loss_nats, expected.final_loss_nats);
    EXPECT_EQ(result_of(copy).at("weights_sha256"), result_of(whole).at("weights_sha256"));
    EXPECT_EQ(result_of(copy).at("train_loss"), result_of(whole).at("train_loss"));
  }
}

TEST(LossScale, AStaticOneThatOverflowsEndsTheRun) {
  const std::string sentence =
      sentence_of([&] { tiny().train(with(kOverflows, {"loss_scale.mode=static"})); });
  EXPECT_TRUE(contains(sentence, "step 1: the training loss is", "loss scale 4294967296"));
}

TEST(LossScale, WhatIsNoPowerOfTwoIsRefused) {
  for (const char* key : {"loss_scale.initial=1000.0", "loss_scale.growth=3.0", "loss_scale.backoff=0.3"}) {
    const std::string sentence = sentence_of([&] { tiny().config({key}); });
    EXPECT_TRUE(contains(sentence, "which is not a power of two")) << key << ": " << sentence;
  }
}

TEST(LossScale, Fp16ComputesAlikeOnTheCudaBackend) {
  TinyRun few(2);  // the emulated device scores them
  const Overrides steps = {"train.steps=4", "train.tokens_per_step=128", "train.log_every=1",
                           "train.compute_dtype=fp16"};
  const RunResult cpu = few.train(steps),
                  cuda = few.train(with(steps, {"backend.plugin=cuda", "backend.device=" + test_device()}));
  ASSERT_EQ(cuda.step_loss_nats.size(), cpu.step_loss_nats.size());
  for (std::size_t i = 0; i < cpu.step_loss_nats.size(); ++i)
    EXPECT_NEAR(cuda.step_loss_nats[i], cpu.step_loss_nats[i], 5e-3) << i;
  EXPECT_NEAR(cuda.validation->val_loss_nats, cpu.validation->val_loss_nats, 1e-2);
}

}  // namespace
}  // namespace mulligan::end_to_end::loss_scale_test
