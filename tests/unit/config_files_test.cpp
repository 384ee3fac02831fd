// The records' configurations hold the published numbers. The set of core keys is that of docs/configuration.md.
#include <gtest/gtest.h>

#include <map>

#include "framework/config/config_report.h"
#include "framework/config/core_schema.h"
#include "framework/config/run_config.h"
#include "framework/core/file.h"
#include "framework/model/parameters.h"
#include "tests/unit/config_testing.h"

namespace mulligan::config_files_test {
namespace {

const std::string kConfigs = MULLIGAN_SOURCE_DIR "/configs/";

// What the keys in `sets` change of a configuration that has these values: nothing.
std::string changed_by(const std::string& file, const std::vector<std::string>& sets) {
  return format_differences(
      diff_configs(load_run_config(kConfigs + file), load_run_config(kConfigs + file, sets)));
}

TEST(ConfigFiles, TheRecordHasThePublishedNumbers) {
  const std::string record = "records/pr1886.toml";
  // At last what an audit of the script found (docs/records.md).
  EXPECT_EQ(changed_by(record, words(R"(
      model.layers=11 model.width=512 model.loop.extra_passes=2 model.lanes.parallel_start=8 model.rope.dims=16
      model.rope.table=bf16 train.tokens_per_step=786432 train.micro_batches=8 train.clip_order=before_reduction
      train.warmup.keep_muon_momentum=true ema.decay=0.9965 ledger.artifact_bytes=16000000
      optimizer.embedding.lr=0.03 optimizer.matrices.lr=0.026 optimizer.vectors.lr=0.02
      parameters.0.master_dtype=bf16 parameters.1.communication=sharded ttt.batch_documents=64
      ttt.chunk_tokens=48 ttt.prefix_documents=2000 ttt.phases=3 ttt.optimizer.lr=1e-4
      model.lanes.residual_init=1.1015625 quantize.calibration_shard_stride=8 checkpoint.every_seconds=0
      ttt.on_collapse=off train.reserve_seconds=0.5 ledger.rules=open)")),
            "");
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

TEST(ConfigFiles, TheLaterRecordsHaveThePublishedNumbers) {
  const std::string both = R"(
      model.attention_gate=false model.softcap=30 model.smear_gate.window=12 model.sparse_gate.window=12
      model.sparse_gate.scale=0.5 model.asymmetric_softcap.enabled=true train.tokens_per_step=786432
      train.clip_norm=0.3 ema.decay=0.9965 parameters.2.match=softcap_* parameters.2.optimizer=none )";
  // Of 2014 three lengths. The loop starts where its share is reached; a length holds where exactly its share is spent.
  const std::map<std::string, std::string> own = {{"2014", R"(
      model.smear_gate.document_start=1 model.q_gain=5.25 optimizer.matrices.lr=0.026
      train.reserve_seconds=4.0 train.sequence_length=3072 phase.0.sequence_length=1024
      phase.1.sequence_length=2048 phase.2.sequence_length=2048 phase.3.sequence_length=3072
      phase.0.through_fraction=0.1 phase.1.until_fraction=0.35 phase.2.through_fraction=0.7
      phase.0.layer_order=plain phase.1.layer_order=plain phase.2.layer_order=looped
      phase.3.layer_order=looped phase.1.rewarm_steps=32 phase.3.rewarm_steps=32)"},
                                                  {"2135", R"(
      model.smear_gate.document_start=-1 model.q_gain=5.0 optimizer.matrices.lr=0.028
      train.reserve_seconds=0.5 train.sequence_length=2048)"}};
  for (const auto& [name, sets] : own) {
    SCOPED_TRACE(name);
    EXPECT_EQ(changed_by("records/" + name + ".toml", words(both + sets)), "");
    const RunConfig c = load_run_config(kConfigs + "records/" + name + ".toml").config;
    EXPECT_EQ(parameter_count(model_parameters(c.model)), 35'945'673);
    EXPECT_EQ(c.parameters.size(), 4u);
    EXPECT_EQ(number(c.schedule.keys, "fraction"), 0.85);
    EXPECT_EQ(number(c.schedule.keys, "min_factor"), 0.10);
    ASSERT_EQ(c.optimizers.size(), 3u);
    EXPECT_EQ(number(c.optimizers[0].table.keys, "beta2"), 0.99);
    EXPECT_EQ(number(c.optimizers[2].table.keys, "beta2"), 0.99);
    EXPECT_EQ(number(c.optimizers[1].table.keys, "momentum"), 0.97);
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
