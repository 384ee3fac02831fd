// The configurations of pull requests 2014 and 2135: what they change of pr1886.toml's model, and no more.
#include <gtest/gtest.h>

#include "framework/config/run_config.h"
#include "framework/model/elements/asymmetric_softcap/config.h"
#include "framework/model/elements/smear_gate/config.h"
#include "framework/model/elements/sparse_gate/config.h"
#include "framework/model/parameters.h"

namespace mulligan::config_later_records_test {
namespace {

RunConfig record(const std::string& name) {
  return load_run_config(MULLIGAN_SOURCE_DIR "/configs/records/" + name + ".toml").config;
}

double number(const ConfigNode& keys, const std::string& name) {
  const ConfigNode* node = keys.find(name);
  ConfigValue value;
  if (node == nullptr || !convert(node->value, ValueType::real, value)) return -1;
  return value.real();
}

TEST(LaterRecords, BothHaveThePublishedNumberOfParameters) {
  EXPECT_EQ(parameter_count(model_parameters(record("2014").model)), 35'945'673);
  EXPECT_EQ(parameter_count(model_parameters(record("2135").model)), 35'945'673);
}

TEST(LaterRecords, TheirElements) {
  for (const char* name : {"2014", "2135"}) {
    SCOPED_TRACE(name);
    const ModelConfig model = record(name).model;
    EXPECT_FALSE(model.attention_gate);
    EXPECT_EQ(elements::smear_gate::config_of(model).window, 12);
    EXPECT_EQ(elements::sparse_gate::config_of(model).window, 12);
    EXPECT_EQ(elements::sparse_gate::config_of(model).scale, 0.5);
    EXPECT_TRUE(elements::asymmetric_softcap::config_of(model).enabled);
    EXPECT_EQ(model.softcap, 30);
  }
  EXPECT_EQ(elements::smear_gate::config_of(record("2014").model).document_start, 1);
  EXPECT_EQ(elements::smear_gate::config_of(record("2135").model).document_start, -1);
  EXPECT_EQ(record("2014").model.q_gain, 5.25);
  EXPECT_EQ(record("2135").model.q_gain, 5.0);
}

TEST(LaterRecords, TheirTraining) {
  for (const char* name : {"2014", "2135"}) {
    SCOPED_TRACE(name);
    const RunConfig c = record(name);
    EXPECT_EQ(c.train.tokens_per_step, 786432);
    EXPECT_EQ(number(c.schedule.keys, "fraction"), 0.85);
    EXPECT_EQ(number(c.schedule.keys, "min_factor"), 0.10);
    ASSERT_EQ(c.optimizers.size(), 3u);
    EXPECT_EQ(number(c.optimizers[0].table.keys, "beta2"), 0.99);
    EXPECT_EQ(number(c.optimizers[2].table.keys, "beta2"), 0.99);
    EXPECT_EQ(number(c.optimizers[1].table.keys, "momentum"), 0.97);
    ASSERT_EQ(c.parameters.size(), 4u);
    EXPECT_EQ(c.parameters[2].match, "softcap_*");
    EXPECT_EQ(c.parameters[2].optimizer, no_optimizer);
    EXPECT_EQ(c.train.clip_norm, 0.3);
    EXPECT_EQ(c.ema.decay, 0.9965);
  }
  EXPECT_EQ(record("2014").optimizers[1].lr, 0.026);
  EXPECT_EQ(record("2135").optimizers[1].lr, 0.028);
  EXPECT_EQ(record("2014").train.reserve_seconds, 4.0);
  EXPECT_EQ(record("2135").train.reserve_seconds, 0.5);
  EXPECT_EQ(record("2135").train.sequence_length, 2048);
}

// Three lengths, and looping from 35 % on as before.
TEST(LaterRecords, TheLengthsOf2014) {
  const RunConfig c = record("2014");
  EXPECT_EQ(c.train.sequence_length, 3072);
  ASSERT_EQ(c.phases.size(), 4u);
  const std::int64_t lengths[] = {1024, 2048, 2048, 3072};
  const double ends[] = {0.10, 0.35, 0.70, 0};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(c.phases[i].sequence_length, lengths[i]) << i;
    // The loop starts where its share is reached; a length holds where exactly its share is spent.
    const PhaseEnd& until = c.phases[i].until;
    EXPECT_EQ(i == 1 ? until.fraction : until.through_fraction, ends[i]) << i;
    EXPECT_EQ(c.phases[i].layer_order, i < 2 ? LayerOrderKind::plain : LayerOrderKind::looped) << i;
    EXPECT_EQ(c.phases[i].rewarm_steps, i % 2 == 1 ? 32 : 0) << i;
  }
}

}  // namespace
}  // namespace mulligan::config_later_records_test
