// The configurations of configs/ load, the record's holds the published numbers, and a variant is a few lines. The set of core
// keys is that of docs/configuration.md: adding, renaming or removing one is a deliberate act, seen in review.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "framework/config/config_report.h"
#include "framework/config/core_schema.h"
#include "framework/config/run_config.h"
#include "framework/core/file.h"
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

// What the keys in `sets` change of a configuration that has these values: nothing.
std::string changed_by(const std::string& file, const std::vector<std::string>& sets) {
  return format_differences(
      diff_configs(load_run_config(kConfigs + file), load_run_config(kConfigs + file, sets)));
}

TEST(ConfigFiles, TheRecordHasThePublishedNumbers) {
  const std::string record = "records/pr1886.toml";
  const std::vector<std::string> published = {"model.layers=11",
                                              "model.width=512",
                                              "model.loop.extra_passes=2",
                                              "model.lanes.parallel_start=8",
                                              "model.rope.dims=16",
                                              "model.rope.table=bf16",
                                              "train.tokens_per_step=786432",
                                              "train.micro_batches=8",
                                              "train.clip_order=before_reduction",
                                              "train.warmup.keep_muon_momentum=true",
                                              "ema.decay=0.9965",
                                              "ledger.artifact_bytes=16000000",
                                              "optimizer.embedding.lr=0.03",
                                              "optimizer.matrices.lr=0.026",
                                              "optimizer.vectors.lr=0.02",
                                              "parameters.0.master_dtype=bf16",
                                              "parameters.1.communication=sharded",
                                              "ttt.batch_documents=64",
                                              "ttt.chunk_tokens=48",
                                              "ttt.prefix_documents=2000",
                                              "ttt.phases=3",
                                              "ttt.optimizer.lr=1e-4"};
  EXPECT_EQ(changed_by(record, published), "");
  // What an audit of the script found (docs/records.md).
  const std::vector<std::string> accidents = {
      "model.lanes.residual_init=1.1015625", "quantize.calibration_shard_stride=8",
      "checkpoint.every_seconds=0",          "ttt.on_collapse=off",
      "train.reserve_seconds=0.5",           "ledger.rules=open"};
  EXPECT_EQ(changed_by(record, accidents), "");
  EXPECT_EQ(changed_by("records/pr1886_strict.toml",
                       {"train.reserve_seconds=8", "ledger.rules=strict", "train.tokens_per_step=786432"}),
            "");
  const std::vector<std::string> finer = {"run.name=pr1886_fine", "quantize.corrected_tensors=3",
                                          "quantize.tensors.0.clip_sigmas=12.75"};
  EXPECT_EQ(format_differences(diff_configs(load_run_config(kConfigs + record, finer),
                                            load_run_config(kConfigs + "records/pr1886_fine.toml"))),
            "");
  const RunConfig c = load_run_config(kConfigs + record).config;
  EXPECT_EQ(number(c.optimizers[0].table.keys, "weight_decay"), 0.085);
  EXPECT_EQ(number(c.optimizers[1].table.keys, "momentum_warmup_steps"), 1500);
  EXPECT_EQ(number(c.schedule.keys, "fraction"), 0.75);
  EXPECT_EQ(number(c.ttt->optimizer.keys, "weight_decay"), 2.0);
  EXPECT_EQ(number(c.ttt->adapters.keys, "rank"), 128);
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

TEST(ConfigFrozenKeys, TheReferenceIsThatOfTheDeclarations) {
  EXPECT_EQ(write_reference(), read_file(MULLIGAN_SOURCE_DIR "/docs/configuration.md"))
      << "When the change is meant, write it anew: mulligan config docs > docs/configuration.md";
}

TEST(ConfigFrozenKeys, EveryKeyHasAHelpText) {
  for (const KeySection& section : core_sections()) {
    for (const KeySpec& key : section.keys)
      EXPECT_FALSE(key.help.empty()) << section.header << " " << key.name;
  }
}

}  // namespace
}  // namespace mulligan::config_files_test
