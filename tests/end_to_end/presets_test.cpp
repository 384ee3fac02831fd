// The presets of configs/phases at a tiny size, their GPU phases on the cuda backend (the emulated device, or with
// MULLIGAN_TEST_DEVICE=gpu a GPU): each trains, is scored, and hands its state over if its configuration demands it.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "framework/core/file.h"
#include "tests/end_to_end/tiny_run.h"
#include "tests/support/plugins.h"
#include "tests/support/test_device.h"

namespace mulligan::end_to_end::presets_test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

struct Preset {
  const char* name;
  std::vector<std::string> backends;  // of its phases
  std::vector<std::string> dtypes;
};
const std::vector<Preset> kPresets = {
    {"A", {"cuda"}, {"bf16"}},
    {"C", {"cpu", "cuda"}, {"fp32", "bf16"}},
    {"D", {"cuda", "cuda"}, {"fp32", "bf16"}},
    {"E", {"cuda", "cpu"}, {"bf16", "fp32"}},
    {"G", {"cpu", "cuda"}, {"fp32", "fp32"}},
    {"H", {"cuda"}, {"fp16"}},
};

TEST(PhasePresets, TrainOnBothBackends) {
  TinyRun data(2);  // few documents: the emulated device scores them
  const std::vector<std::string> small = {
      "data.train=" + (data.folder() / "data/fineweb_train_*.bin").string(),
      "data.validation=" + (data.folder() / "data/fineweb_val_*.bin").string(),
      "data.tokenizer=" + (data.folder() / "data/tokenizer.model").string(),
      "backend.device=" + test_device(),
      "model.vocabulary=" + std::to_string(tiny_vocabulary),
      "model.width=32",
      "model.heads=2",
      "train.steps=4",
      "train.tokens_per_step=64",
      "train.sequence_length=32",
      "train.log_every=1",
      "doctor.level=off",
      "eval.sequence_length=32",
      "eval.packed_sequences=2"};
  for (const Preset& preset : kPresets) {
    SCOPED_TRACE(preset.name);
    const std::string directory = data.next_directory();
    Overrides overrides = with(small, {"run.directory=" + directory});
    if (preset.backends.size() > 1) overrides.push_back("phase.0.until_steps=2");
    const fs::path file =
        fs::path(MULLIGAN_SOURCE_DIR) / "configs/phases" / (std::string(preset.name) + ".toml");
    LoadedConfig loaded = load_run_config(file.string(), overrides);
    ASSERT_EQ(loaded.config.phases.size(), preset.backends.size());
    const RunResult result = train_loaded(loaded);
    EXPECT_EQ(result.steps, 4);
    ASSERT_TRUE(result.validation);
    EXPECT_GT(result.validation->val_loss_nats, 0);

    const std::vector<Json> switches = events_of(directory, "phase_switch");
    EXPECT_EQ(events_of(directory, "step").size(), 4u);
    ASSERT_EQ(switches.size(), preset.backends.size() - 1);
    if (!switches.empty()) {
      EXPECT_EQ(switches[0].at("step"), 2);
      EXPECT_EQ(switches[0].at("probe_tolerance_nats"), preset.name == std::string("G") ? 1e-4 : 2e-2);
    }
    for (std::size_t i = 0; i < preset.backends.size(); ++i) {
      const Phase& phase = loaded.config.phases[i];
      const PluginTable& backend = phase.backend ? *phase.backend : loaded.config.backend;
      EXPECT_EQ(backend.plugin, preset.backends[i]) << phase.name;
      EXPECT_NE(phase_text(phase).find(preset.dtypes[i]), std::string::npos) << phase_text(phase);
    }
  }
}

}  // namespace
}  // namespace mulligan::end_to_end::presets_test
