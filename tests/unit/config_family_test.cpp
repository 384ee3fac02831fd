// model.family: what the family qwen2 switches off, and that keys for what it has not are refused.
#include <gtest/gtest.h>

#include "framework/config/config_report.h"
#include "framework/config/run_config.h"
#include "tests/unit/config_testing.h"

namespace mulligan::config_family_test {
namespace {

LoadedConfig load(std::vector<std::string> sets = {}) {
  sets.insert(sets.begin(), "model.family=qwen2");
  return parse_run_config(kSmallConfig, "conf/small.toml", sets);
}

TEST(ConfigFamily, TheRecordIsTheDefaultAndUnchanged) {
  const ModelConfig model = parse_run_config(kSmallConfig, "conf/small.toml").config.model;
  EXPECT_EQ(model.family, ModelFamily::record);
  EXPECT_EQ(model.softcap, 30);
  EXPECT_TRUE(model.skip_weights && model.residual_mix && model.qk_norm && model.attention_gate);
}

TEST(ConfigFamily, Qwen2HasNoPartOfTheRecordAndSaysSo) {
  const LoadedConfig loaded = load();
  const ModelConfig& model = loaded.config.model;
  EXPECT_EQ(model.softcap, 0);
  EXPECT_EQ(model.q_gain, 0);
  EXPECT_EQ(model.xsa_last_layers, 0);
  EXPECT_EQ(model.norm_eps, 1e-6);
  EXPECT_FALSE(model.skip_weights || model.skip_gates || model.residual_mix || model.qk_norm ||
               model.attention_gate || model.ln_scale);
  EXPECT_EQ(loaded.core.at("model.softcap").origin.text(), "derived");
  EXPECT_EQ(load({"model.norm_eps=1e-5"}).config.model.norm_eps, 1e-5);
}

TEST(ConfigFamily, KeysOfTheRecordAreRefused) {
  for (const std::string key :
       {"model.softcap=15", "model.q_gain=1", "model.skip_gates=true", "model.loop.extra_passes=1",
        "model.lanes.parallel_start=2", "model.xsa_last_layers=2", "model.xsa_last_layers=-1",
        "model.ln_scale=true"}) {
    const std::string sentence = error_of([&] { load({key}); });
    EXPECT_TRUE(contains(sentence, key.substr(0, key.find('='))));
    EXPECT_TRUE(contains(sentence, "the family \"qwen2\" has no such part"));
  }
  // What is off anyway may be said.
  EXPECT_EQ(load({"model.softcap=0", "model.skip_gates=false"}).config.model.softcap, 0);
}

TEST(ConfigFamily, HeadsMayBeWiderThanTheModelShares) {
  EXPECT_EQ(load({"model.head_width=10"}).config.model.head_width, 10);
  EXPECT_TRUE(contains(error_of([] { load({"model.head_width=7"}); }), "must be even"));
  EXPECT_TRUE(contains(error_of([] { load({"model.heads=64", "model.kv_heads=64"}); }), "has no dimensions"));
  EXPECT_TRUE(contains(error_of([] { load({"model.kv_heads=3"}); }), "does not divide"));
}

// What a run directory keeps is read again.
TEST(ConfigFamily, ThePrintedConfigurationIsTheSame) {
  const LoadedConfig first = load({"model.head_width=10", "model.rope.base=1e6"});
  std::string text = print_resolved(first);
  const RunConfig again = parse_run_config(text, "config.toml").config;
  EXPECT_EQ(again.model.family, ModelFamily::qwen2);
  EXPECT_EQ(again.model.head_width, 10);
  EXPECT_EQ(again.model.rope.base, 1e6);
  EXPECT_EQ(again.model.norm_eps, 1e-6);
}

}  // namespace
}  // namespace mulligan::config_family_test
