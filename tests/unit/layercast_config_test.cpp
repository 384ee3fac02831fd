// train.layercast and its place in [[phase]] rows: refusals, and the dtypes that kernels read.
#include <gtest/gtest.h>

#include "framework/config/config_report.h"
#include "framework/run/parameter_plan.h"
#include "tests/support/sentence.h"
#include "tests/support/small_config.h"

namespace mulligan::layercast_config_test {
namespace {

LoadedConfig load(const std::string& rest, const std::vector<std::string>& overrides = {}) {
  std::vector<std::string> sets = {"model.layers=3", "model.kv_heads=2", "model.mlp_hidden=40"};
  sets.insert(sets.end(), overrides.begin(), overrides.end());
  return small_config(sets, rest);
}

std::string refusal(const std::string& rest, const std::vector<std::string>& overrides = {}) {
  return refusal_of(ExitCode::bad_configuration, [&] { load(rest, overrides); });
}

TEST(LayerCast, StoresProjectionsAloneInSixteenBits) {
  for (const auto& [word, dtype] : {std::pair{"bf16", MLG_BF16}, {"fp16", MLG_F16}}) {
    const RunConfig config = load("", {std::string("train.layercast=") + word}).config;
    int projections = 0;
    for (const ParameterLayout& layout : parameter_layouts(config.model, scored_types(config))) {
      const bool bank = layout.spec.name.ends_with("_bank");
      EXPECT_EQ(layout.spec.projection, bank) << layout.spec.name;
      EXPECT_EQ(layout.compute, bank ? dtype : MLG_F32) << layout.spec.name;
      EXPECT_EQ(layout.master, MLG_F32) << "training updates f32";
      projections += bank ? 1 : 0;
    }
    EXPECT_EQ(projections, 4);
  }
}

TEST(LayerCast, OfQwen2StoresEveryProjectionOfABlock) {
  int projections = 0;
  for (const ParameterSpec& spec : model_parameters(load("", {"model.family=qwen2"}).config.model)) {
    EXPECT_EQ(spec.projection, spec.name.ends_with("_proj.weight")) << spec.name;
    projections += spec.projection ? 1 : 0;
  }
  EXPECT_EQ(projections, 3 * 7);
}

TEST(LayerCast, IsRefusedWithAnotherComputeDtype) {
  const std::string refused = refusal("", {"train.layercast=bf16", "train.compute_dtype=bf16"});
  EXPECT_TRUE(contains(refused, "compute_dtype is \"bf16\""));
  EXPECT_TRUE(contains(refusal("", {"train.layercast=fp8"}), "layercast"));
}

constexpr const char* kPhases = R"(
[[phase]]
until_steps = 4
compute_dtype = "fp16"
layercast = "off"
[[phase]]
)";

TEST(LayerCast, IsAPhasesOwnAndScoresFollowTheLastPhase) {
  const LoadedConfig loaded = load(kPhases, {"train.layercast=fp16"});
  EXPECT_EQ(loaded.config.phases[0].layercast, LayerCast::off);
  EXPECT_EQ(loaded.config.phases[1].layercast, LayerCast::fp16);
  EXPECT_EQ(scored_types(loaded.config), ComputeTypes(MLG_F32, MLG_F16));
  EXPECT_TRUE(contains(phase_text(loaded.config.phases[1]), "projections in fp16"));
  // Printed, it reads back to the same settings.
  EXPECT_TRUE(diff_configs(loaded, parse_run_config(print_resolved(loaded), "again.toml")).empty());

  const std::string both = refusal(R"(
[[phase]]
name = "narrow"
until_steps = 4
compute_dtype = "bf16"
[[phase]]
)",
                                   {"train.layercast=bf16"});
  EXPECT_TRUE(contains(both, "the phase 'narrow'"));
}

TEST(LayerCast, KeepsWeightsInOneSixteenBitFormat) {
  for (const std::string second : {"layercast", "compute_dtype"}) {  // both name the format of weights
    const std::string refused = refusal(R"(
[[phase]]
name = "narrow"
until_steps = 4
compute_dtype = "bf16"
[[phase]]
name = "wide"
)" + second + " = \"fp16\"\n");
    EXPECT_TRUE(contains(refused, "the phase 'wide' has weights in fp16, but the phase 'narrow' in bf16"));
  }
}

TEST(LayerCast, MovesAScore) {
  for (const ScoreCommand command : {ScoreCommand::eval, ScoreCommand::ttt}) {
    EXPECT_TRUE(moves_score("train.layercast", command));
  }
}

}  // namespace
}  // namespace mulligan::layercast_config_test
