// The configurations of configs/ load, the record's holds the published numbers, and a variant is
// a few lines.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "framework/config/config_report.h"
#include "framework/config/run_config.h"
#include "tests/unit/config_testing.h"

namespace mulligan::config_files_test {
namespace {

const std::string kConfigs = MULLIGAN_SOURCE_DIR "/configs/";

double number(const ConfigNode& keys, const std::string& name) {
  const ConfigNode* node = keys.find(name);
  ConfigValue value;
  if (node == nullptr || !convert(node->value, ValueType::real, value)) {
    ADD_FAILURE() << "no number '" << name << "'";
    return -1;
  }
  return value.real();
}

TEST(ConfigFiles, TheRecordHasThePublishedNumbers) {
  const RunConfig c = load_run_config(kConfigs + "records/pr1886.toml").config;
  EXPECT_EQ(c.model.layers, 11);
  EXPECT_EQ(c.model.width, 512);
  EXPECT_EQ(c.model.loop.extra_passes, 2);
  EXPECT_EQ(c.model.lanes.parallel_start, 8);
  EXPECT_EQ(c.model.rope.dims, 16);
  EXPECT_EQ(c.model.rope.table, RopeTable::bf16);
  EXPECT_EQ(c.train.tokens_per_step, 786432);
  EXPECT_EQ(tokens_per_micro_batch(c.train), 98304);
  EXPECT_EQ(c.train.clip_order, ClipOrder::before_reduction);
  EXPECT_TRUE(c.train.warmup.keep_muon_momentum);
  EXPECT_EQ(c.ema.decay, 0.9965);
  EXPECT_EQ(c.ledger.artifact_bytes, 16000000);
  ASSERT_EQ(c.optimizers.size(), 3u);
  EXPECT_EQ(c.optimizers[0].name, "embedding");
  EXPECT_EQ(c.optimizers[0].lr, 0.03);
  EXPECT_EQ(number(c.optimizers[0].table.keys, "weight_decay"), 0.085);
  EXPECT_EQ(c.optimizers[1].name, "matrices");
  EXPECT_EQ(c.optimizers[1].lr, 0.026);
  EXPECT_EQ(number(c.optimizers[1].table.keys, "momentum_warmup_steps"), 1500);
  EXPECT_EQ(c.optimizers[2].name, "vectors");
  EXPECT_EQ(c.optimizers[2].lr, 0.02);
  EXPECT_EQ(number(c.schedule.keys, "fraction"), 0.75);
  EXPECT_EQ(c.parameters[0].master_dtype, Precision::bf16);
  EXPECT_EQ(c.parameters[1].communication, Communication::sharded);
  ASSERT_TRUE(c.ttt);
  EXPECT_EQ(c.ttt->config.batch_documents, 64);
  EXPECT_EQ(c.ttt->config.chunk_tokens, 48);
  EXPECT_EQ(c.ttt->config.prefix_documents, 2000);
  EXPECT_EQ(c.ttt->config.phases, 3);
  EXPECT_EQ(c.ttt->lr, 1e-4);
  EXPECT_EQ(number(c.ttt->optimizer.keys, "weight_decay"), 2.0);
  EXPECT_EQ(number(c.ttt->adapters.keys, "rank"), 128);
}

// What an audit of the script found (docs/records.md).
TEST(ConfigFiles, TheRecordRepeatsTheScriptsAccidents) {
  const RunConfig c = load_run_config(kConfigs + "records/pr1886.toml").config;
  EXPECT_EQ(c.model.lanes.residual_init, 1.1015625);  // 1.1 in bf16
  EXPECT_EQ(c.quantize->options.calibration_shard_stride, 8);
  EXPECT_EQ(c.checkpoint.every_seconds, 0);
  EXPECT_EQ(c.ttt->config.on_collapse, OnCollapse::off);
  EXPECT_EQ(c.train.reserve_seconds, 0.5);
  EXPECT_EQ(c.ledger.rules, LedgerRules::open);
}

TEST(ConfigFiles, TheStrictVariantKeepsCalibrationInsideTheBudget) {
  const RunConfig c = load_run_config(kConfigs + "records/pr1886_strict.toml").config;
  EXPECT_EQ(c.train.reserve_seconds, 8);
  EXPECT_EQ(c.ledger.rules, LedgerRules::strict);
  EXPECT_EQ(c.train.tokens_per_step, 786432);
}

// The presets of docs/phases.md: which precision, where, for how long.
TEST(ConfigFiles, ThePhasePresetsSayWhatTheyAreNamedFor) {
  const auto text = [](const std::string& name) {
    const RunConfig c = load_run_config(kConfigs + "phases/" + name + ".toml").config;
    EXPECT_EQ(c.backend.plugin, "cuda");
    EXPECT_EQ(c.train.steps, 500);
    std::string phases;
    for (const Phase& phase : c.phases) {
      EXPECT_EQ(phase.lr_policy, LrPolicy::continued);
      phases += fmt::format("{} {} until {}; ", phase.backend ? phase.backend->plugin : c.backend.plugin,
                            phase.compute_dtype == Precision::bf16 ? "bf16" : "fp32", phase.until.steps);
    }
    return phases;
  };
  EXPECT_EQ(text("A"), "cuda bf16 until 0; ");
  EXPECT_EQ(text("C"), "cpu fp32 until 100; cuda bf16 until 0; ");
  EXPECT_EQ(text("D"), "cuda fp32 until 100; cuda bf16 until 0; ");
  EXPECT_EQ(text("E"), "cuda bf16 until 400; cpu fp32 until 0; ");
  EXPECT_EQ(text("G"), "cpu fp32 until 100; cuda fp32 until 0; ");
}

TEST(ConfigFiles, TheQuickstartHasEveryFeatureOn) {
  const RunConfig c = load_run_config(kConfigs + "quickstart.toml").config;
  const ModelConfig& m = c.model;
  EXPECT_TRUE(m.ln_scale && m.residual_mix && m.qk_norm && m.attention_gate && m.skip_weights &&
              m.skip_gates);
  EXPECT_GT(m.q_gain, 0);
  EXPECT_EQ(m.xsa_last_layers, m.layers);
  EXPECT_GT(m.loop.extra_passes, 0);
  EXPECT_GT(m.lanes.parallel_start, 0);
  EXPECT_LT(m.kv_heads, m.heads);
  EXPECT_LT(m.rope.dims, m.head_width);
  EXPECT_GT(m.softcap, 0);
}

TEST(ConfigFiles, AVariantWithAdamWAndWarmRestartsIsAFewLines) {
  const TemporaryFolder folder;
  const std::string variant = folder.write(
      "variant.toml",
      "extends = '" + kConfigs + "quickstart.toml'\n" +
          "[optimizer.matrices]\nplugin = 'adamw'\nlr = 0.003\n[schedule]\nplugin = 'sgdr'\nperiod = 50\n");
  const LoadedConfig base = load_run_config(kConfigs + "quickstart.toml");
  const LoadedConfig loaded = load_run_config(variant, std::vector<std::string>{"run.name=quickstart"});
  EXPECT_EQ(loaded.config.optimizers[1].table.keys.members.size(), 0u);  // none of Muon's keys is left
  for (const ConfigDifference& d : diff_configs(base, loaded)) {
    EXPECT_TRUE(d.key.starts_with("optimizer.matrices.") || d.key.starts_with("schedule.")) << d.key;
  }
}

}  // namespace
}  // namespace mulligan::config_files_test
