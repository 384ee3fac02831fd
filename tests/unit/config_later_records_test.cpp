// The configurations of pull requests 2014 and 2135: what they change of pr1886.toml's model, and no more.
#include <gtest/gtest.h>

#include <map>

#include "framework/config/config_report.h"
#include "framework/config/run_config.h"
#include "framework/model/parameters.h"
#include "tests/unit/config_testing.h"

namespace mulligan::config_later_records_test {
namespace {

TEST(LaterRecords, HaveThePublishedNumbers) {
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
    const std::string file = MULLIGAN_SOURCE_DIR "/configs/records/" + name + ".toml";
    const LoadedConfig loaded = load_run_config(file);
    // Setting a key to the value that it has changes nothing.
    EXPECT_EQ(format_differences(diff_configs(loaded, load_run_config(file, words(both + sets)))), "");
    const RunConfig& c = loaded.config;
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

}  // namespace
}  // namespace mulligan::config_later_records_test
