// A run with every element of the model on, and with parameters that nothing updates.
#include <gtest/gtest.h>

#include <algorithm>

#include "framework/core/safetensors.h"
#include "tests/end_to_end/tiny_run.h"

namespace mulligan::end_to_end::elements_train_test {
namespace {

const std::vector<std::string> elements = {"model.attention_gate=false", "model.smear_gate.window=12",
                                           "model.sparse_gate.window=12", "model.softcap=20",
                                           "model.asymmetric_softcap.enabled=true"};

// With a first row of [[parameters]] that keeps what `match` takes as it is.
RunResult train(const std::string& match, const Overrides& overrides) {
  LoadedConfig loaded = tiny().config(with(overrides, {"run.directory=" + tiny().next_directory()}));
  ParameterRow row = loaded.config.parameters.front();
  row.match = match;
  row.optimizer = no_optimizer;
  loaded.config.parameters.insert(loaded.config.parameters.begin(), row);
  std::vector<Settings>& rows = loaded.rows["parameters"];
  Settings written = rows.front();
  for (Setting& setting : written.all()) {
    if (setting.name == "match") setting.value = ConfigValue(match);
    if (setting.name == "optimizer") setting.value = ConfigValue(no_optimizer);
  }
  rows.insert(rows.begin(), written);
  return train_loaded(loaded);
}

TEST(ElementsTrain, LearnsAndMovesWhatHasAnOptimizer) {
  const RunResult result =
      train("softcap_*", with(elements, {"train.steps=60", "ema.decay=0.5", "train.compute_dtype=bf16"}));
  EXPECT_LT(result.final_loss_nats, 0.8 * result.initial_loss_nats);
  ASSERT_TRUE(result.validation);
  EXPECT_LT(result.validation->val_loss_nats, 0.8 * result.initial_loss_nats);
  for (const char* cap : {"softcap_pos", "softcap_neg"}) {
    EXPECT_EQ(weights_of(result, cap), std::vector<float>{20.0F}) << cap;
  }
  for (const char* name : {"smear_lambda", "smear_gate.weight", "blocks.0.attn.attn_gate_w"}) {
    const std::vector<float> weights = weights_of(result, name);
    EXPECT_TRUE(std::ranges::any_of(weights, [](float w) { return w != 0; })) << name;
  }
}

// Also where the graph touches it, its average, its compute copy and the clip leave it alone.
TEST(ElementsTrain, WhatNothingUpdatesKeepsItsInitialValue) {
  const std::vector<std::string> overrides = {"train.steps=4", "ema.decay=0.9", "train.compute_dtype=bf16"};
  const RunResult kept = train("skip_*", overrides);
  for (const float weight : weights_of(kept, "skip_weights")) ASSERT_EQ(weight, 1.0F);
  for (const float gate : weights_of(kept, "skip_gates")) ASSERT_EQ(gate, 0.0F);
  const RunResult moved = tiny().train(overrides);
  EXPECT_TRUE(std::ranges::any_of(weights_of(moved, "skip_weights"), [](float w) { return w != 1.0F; }));
}

}  // namespace
}  // namespace mulligan::end_to_end::elements_train_test
