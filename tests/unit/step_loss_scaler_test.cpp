// The scale of the loss: when it grows, when it is lowered, and what is refused.
#include "framework/step/loss_scaler.h"

#include <gtest/gtest.h>

#include "tests/support/sentence.h"

namespace mulligan::step_loss_scaler_test {
namespace {

LossScaleConfig config_of(LossScaleMode mode) {
  LossScaleConfig config;
  config.mode = mode;
  return config;
}

Phase phase_in(Precision compute) {
  Phase phase;
  phase.compute_dtype = compute;
  return phase;
}

TEST(LossScaler, DynamicDoublesAfterTwoThousandUpdatesAndHalvesWhereOneIsSkipped) {
  LossScaler scaler(config_of(LossScaleMode::dynamic));
  const Phase phase = phase_in(Precision::fp16);
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

TEST(LossScaler, EndsAtOneAndAtTheLargestScale) {
  LossScaleConfig config = config_of(LossScaleMode::dynamic);
  config.initial = 4;
  config.growth_every = 1;
  LossScaler scaler(config);
  EXPECT_TRUE(scaler.note(false));
  EXPECT_TRUE(scaler.note(false));
  EXPECT_EQ(scaler.state().scale, 1);
  EXPECT_FALSE(scaler.note(false)) << "no lower scale is left";
  EXPECT_EQ(scaler.state().skipped_updates, 2);
  for (int update = 0; update < 40; ++update) scaler.note(true);
  EXPECT_EQ(scaler.state().scale, LossScaler::largest);
}

TEST(LossScaler, AStaticOneStays) {
  LossScaler scaler(config_of(LossScaleMode::constant));
  for (int update = 0; update < 5000; ++update) EXPECT_TRUE(scaler.note(true));
  EXPECT_EQ(scaler.state().scale, 65536);
  EXPECT_FALSE(scaler.note(false));
  EXPECT_EQ(scaler.state().scale, 65536);
}

TEST(LossScaler, AutoScalesFp16Alone) {
  for (const auto& [mode, fp16, fp32] :
       {std::tuple(LossScaleMode::automatic, true, false), std::tuple(LossScaleMode::off, false, false),
        std::tuple(LossScaleMode::constant, true, true), std::tuple(LossScaleMode::dynamic, true, true)}) {
    const LossScaleConfig config = config_of(mode);
    EXPECT_EQ(LossScaler::scales(config, phase_in(Precision::fp16)), fp16);
    EXPECT_EQ(LossScaler::scales(config, phase_in(Precision::fp32)), fp32);
    EXPECT_EQ(LossScaler::scales(config, phase_in(Precision::bf16)), fp32);
    EXPECT_EQ(LossScaler(config).scale(phase_in(Precision::fp32)), fp32 ? 65536 : 1);
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
    EXPECT_TRUE(contains(sentence_of([&] { again.restore({scale, 0, 0}); }), "loss scale")) << scale;
  }
}

}  // namespace
}  // namespace mulligan::step_loss_scaler_test
