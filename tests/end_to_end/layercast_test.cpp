// LayerCast in whole runs: with weights that 16 bits hold, every step of training and every score has the bits of
// fp32; masters stay fp32 otherwise; the bytes are two an element of projections and four of the rest.
#include <gtest/gtest.h>

#include "framework/core/file.h"
#include "framework/core/safetensors.h"
#include "framework/run/loaded_model.h"
#include "framework/run/run_ranks.h"
#include "framework/run/weights.h"
#include "framework/ttt/ttt_session.h"
#include "launch/commands/run_generate.h"
#include "tests/end_to_end/tiny_run.h"
#include "tests/support/plugins.h"
#include "tools/cost/dry_run.h"

namespace mulligan::end_to_end::layercast_test {
namespace {

// Plain calls: fused kernels make one matmul of several, whose sums are cut differently.
const Overrides kPlain = {"run.fused_kernels=false", "train.steps=8"};

TinyRun& tiny() {
  static TinyRun run(5);
  return run;
}

// Elements of the four banks of the tiny model, and of everything else, computed here: 4 layers of width 32 with 4
// heads, 2 key/value heads and an MLP of 64.
constexpr std::int64_t kBanks = 8 * 32 * 32 + 8 * 16 * 32 + 4 * 64 * 32 + 4 * 32 * 64;

std::map<std::string, std::vector<float>> weights_of(const std::filesystem::path& directory) {
  const LoadedConfig loaded = tiny().config(kPlain);
  const std::vector<ParameterSpec> specs = model_parameters(loaded.config.model);
  std::vector<std::vector<float>> values = read_weights(directory / "weights.safetensors", specs);
  std::map<std::string, std::vector<float>> named;
  for (std::size_t i = 0; i < specs.size(); ++i) named[specs[i].name] = std::move(values[i]);
  return named;
}

// bf16 masters of the banks: after every update 16 bits hold the weights.
TEST(LayerCast, TrainingWithExactMastersHasTheBitsOfFp32) {
  const Overrides exact = with(kPlain, {"parameters.0.master_dtype=bf16"});
  const RunResult fp32 = tiny().train(exact);
  const RunResult layercast = tiny().train(with(exact, {"train.layercast=bf16"}));
  EXPECT_EQ(fp32.step_loss_nats, layercast.step_loss_nats);
  EXPECT_EQ(weights_of(fp32.directory), weights_of(layercast.directory));
  ASSERT_TRUE(fp32.validation && layercast.validation);
  EXPECT_EQ(fp32.validation->loss_sum_nats, layercast.validation->loss_sum_nats);
}

TEST(LayerCast, TrainingKeepsFp32MastersAndRoundsTheCopyAlone) {
  const RunResult fp32 = tiny().train(kPlain);
  for (const std::string storage : {"bf16", "fp16"}) {
    const Overrides cast = with(kPlain, {"train.layercast=" + storage});
    const RunResult run = tiny().train(cast);
    EXPECT_NE(run.step_loss_nats, fp32.step_loss_nats) << "the copies are rounded";
    for (std::size_t i = 0; i < run.step_loss_nats.size(); ++i)
      EXPECT_NEAR(run.step_loss_nats[i], fp32.step_loss_nats[i], 0.05) << storage << " step " << i + 1;
    bool narrow = true;
    for (const float weight : weights_of(run.directory).at("mlp_up_bank")) {
      narrow = narrow && decode_weights(encode_floats({weight}, storage == "bf16" ? MLG_BF16 : MLG_F16),
                                        storage == "bf16" ? MLG_BF16 : MLG_F16)[0] == weight;
    }
    EXPECT_FALSE(narrow) << "masters have f32's digits";
  }
}

// From bf16 to LayerCast and on: each phase has copies of its own dtype from the same fp32 masters.
TEST(LayerCast, FollowsABf16PhaseAndPrecedesAnFp32One) {
  const std::string text = read_file(tiny().train({"train.steps=1"}).directory / "config.toml");
  const std::string phases = R"(
[[phase]]
name = "bf16"
until_steps = 2
compute_dtype = "bf16"
[[phase]]
name = "cast"
until_steps = 4
layercast = "bf16"
[[phase]]
name = "fp32"
)";
  const std::string directory = tiny().next_directory();
  const Overrides settings = {"run.directory=" + directory, "checkpoint.directory=" + directory + "/saved",
                              "train.steps=6", "model.loop.start_fraction=0"};
  LoadedConfig loaded = parse_run_config(text + phases, "phases.toml", settings);
  const RunResult run = train_loaded(loaded);
  ASSERT_EQ(run.step_loss_nats.size(), 6u);
  EXPECT_LT(run.step_loss_nats.back(), run.step_loss_nats.front());
  ASSERT_TRUE(run.validation);
}

// Weights of a run, those of the banks as 16 bits hold them.
class LayerCastScores : public testing::TestWithParam<const char*> {
 protected:
  static void SetUpTestSuite() { directory_ = tiny().train(kPlain).directory; }
  DType stored() const { return GetParam() == std::string("bf16") ? MLG_BF16 : MLG_F16; }
  WeightLoader rounded() const {
    return [this](TensorStore& store, const std::vector<ParameterLayout>& layouts) {
      const auto weights = weights_of(directory_);
      for (const ParameterLayout& layout : layouts) {
        std::vector<float> values = weights.at(layout.spec.name);
        if (layout.spec.projection) values = decode_weights(encode_floats(values, stored()), stored());
        upload_master(store, layout, values);
      }
    };
  }
  Overrides cast() const { return with(kPlain, {std::string("train.layercast=") + GetParam()}); }
  static inline std::filesystem::path directory_;
};

TEST_P(LayerCastScores, EvaluationHasTheBitsOfFp32WithTheRoundedWeights) {
  LoadedConfig plain = tiny().config(kPlain), narrow = tiny().config(cast());
  RunRanks alone;
  const EvalResult fp32 =
      evaluate_loaded(plain, test_plugin_host(), "weights", rounded(), {nullptr}, {}, alone);
  const EvalResult layercast =
      evaluate_weights(narrow, test_plugin_host(), directory_ / "weights.safetensors", {nullptr});
  EXPECT_EQ(fp32.loss_sum_nats, layercast.loss_sum_nats);
  EXPECT_GT(layercast.tokens, 100u);
}

TEST_P(LayerCastScores, GeneratingHasTheTextOfFp32WithTheRoundedWeights) {
  GenerateRunOptions options;
  options.console = nullptr;
  options.prompt = "The red cat";
  options.generate.max_tokens = 20;
  LoadedConfig plain = tiny().config(kPlain), narrow = tiny().config(cast());
  const GenerateResult fp32 = run_generate(plain, test_plugin_host(), "weights", rounded(), options);
  const GenerateResult layercast = run_generate(narrow, test_plugin_host(), "weights", rounded(), options);
  EXPECT_EQ(fp32.tokens, layercast.tokens);
  EXPECT_EQ(fp32.loss_nats, layercast.loss_nats);
}

// Adapters are trained through the widened weights.
TEST_P(LayerCastScores, TestTimeTrainingHasTheBitsOfFp32WithTheRoundedWeights) {
  const Overrides small = {"ttt.context_tokens=64",  "ttt.chunk_tokens=16",   "ttt.optimizer.lr=0.002",
                           "ttt.adapters.rank=4",    "ttt.batch_documents=2", "ttt.document_fraction=0.5",
                           "ttt.on_collapse=\"off\""};
  TttOptions options;
  options.console = nullptr;
  LoadedConfig plain = tiny().config(with(kPlain, small)), narrow = tiny().config(with(cast(), small));
  const TttResult fp32 = run_ttt(plain, test_plugin_host(), "weights", rounded(), options);
  const TttResult layercast = run_ttt(narrow, test_plugin_host(), "weights", rounded(), options);
  EXPECT_EQ(fp32.with.loss_sum_nats, layercast.with.loss_sum_nats);

  // A base model that is trained between documents has f32 masters again, which small steps move.
  const Overrides base =
      with(small, {"ttt.document_fraction=1.0", "ttt.prefix_documents=2", "ttt.phases=2",
                   "ttt.base.chunk_tokens=128", "ttt.base.batch_rows=2", "ttt.base.lr=0.01"});
  LoadedConfig whole = tiny().config(with(cast(), with(small, {"ttt.document_fraction=1.0"})));
  const TttResult still = run_ttt(whole, test_plugin_host(), "weights", rounded(), options);
  LoadedConfig trained = tiny().config(with(cast(), base));
  const TttResult moved = run_ttt(trained, test_plugin_host(), "weights", rounded(), options);
  EXPECT_NEAR(moved.with.val_bpb, still.with.val_bpb, 0.3);
  EXPECT_NE(moved.with.loss_sum_nats, still.with.loss_sum_nats);
}

TEST_P(LayerCastScores, WeightsTakeTwoBytesAnElementOfProjectionsAndFourOfTheRest) {
  LoadedConfig narrow = tiny().config(cast());
  resolve_run_plugins(narrow, test_plugin_host(), PluginUse::score);
  const RunPlugins plugins = make_backend_plugin(narrow, test_plugin_host());
  const std::int64_t all = parameter_count(model_parameters(narrow.config.model));
  LoadedModel model(*plugins.backend, narrow.config, LoadedModel::Masters::scored);
  model.load(rounded());
  EXPECT_EQ(model.store().total_bytes(), 2 * kBanks + 4 * (all - kBanks));
  LoadedConfig wide = tiny().config(kPlain);
  LoadedModel fp32(*plugins.backend, wide.config, LoadedModel::Masters::scored);
  EXPECT_EQ(fp32.store().total_bytes(), 4 * all);
}

INSTANTIATE_TEST_SUITE_P(Storage, LayerCastScores, testing::Values("bf16", "fp16"),
                         [](const auto& info) { return std::string(info.param); });

TEST(LayerCast, ThePlanSaysTheBytesOfMastersAndCopies) {
  LoadedConfig loaded = TinyRun::config_without_data(with(kPlain, {"train.layercast=bf16"}));
  const DryRun plan = dry_run(loaded, test_plugin_host());
  for (const MemoryRow& row : plan.rows) {
    if (row.what == "master weights") {
      EXPECT_EQ(row.bytes, 4 * plan.parameters);
    }
    if (row.what == "compute copies") {
      EXPECT_EQ(row.bytes, 2 * kBanks);
    }
  }
}

}  // namespace
}  // namespace mulligan::end_to_end::layercast_test
