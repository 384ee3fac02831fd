// The whole model of the later records against the public code (fixture folder model-2014): training with the
// plain softcap, scores with the asymmetric one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/golden/differences.h"
#include "tests/golden/golden_fixture.h"
#include "tests/golden/golden_model.h"
#include "tests/golden/value_runner.h"
#include "tests/support/model_runner.h"

namespace mulligan::later_model_golden_test {
namespace {

// Of the manifest, for f32.
constexpr double value_tolerance = 1e-4, mean_loss_tolerance = 1e-5, gradient_tolerance = 1e-4;

class LaterModelGolden : public testing::TestWithParam<GoldenKernels> {
 protected:
  LaterModelGolden()
      : data_("model-2014"),
        params_("model-2014", "params.safetensors"),
        model_(golden_later_model(data_.manifest().at("config"))),
        tokens_(data_.ints("tokens")),
        targets_(data_.ints("targets")),
        backend_(make_golden_backend(GetParam())) {}

  std::unique_ptr<ModelRunner> run(const ModelConfig& model, bool looping, bool varlen, HeadUse use,
                                   bool gradients) {
    const std::vector<std::int32_t> segments =
        varlen ? data_.ints("cu_seqlens")
               : std::vector<std::int32_t>{0, static_cast<std::int32_t>(tokens_.size())};
    ModelRunner::Options options;
    options.layer_order = looping ? LayerOrderKind::looped : LayerOrderKind::plain;
    options.gradients = gradients;
    options.keep_points = gradients && varlen && use == HeadUse::training;
    options.segments = segments.size();
    options.head = use;
    auto runner =
        std::make_unique<ModelRunner>(*backend_, model, static_cast<std::int64_t>(tokens_.size()), options);
    for (const ParameterLayout& layout : runner->parameters())
      runner->set_parameter(layout.spec.name, params_.floats(layout.spec.name));
    runner->set_rope(data_.floats("rope.cos"), data_.floats("rope.sin"));
    runner->run(tokens_, targets_, segments);
    return runner;
  }

  // The emulated device takes seconds for each: the looped order, which has every part, stands for both.
  std::vector<std::pair<bool, bool>> modes() const {
    if (GetParam() == GoldenKernels::cuda) return {{true, true}};
    return {{false, true}, {false, false}, {true, true}, {true, false}};
  }
  static std::string prefix(bool looping, bool varlen) {
    return fmt::format("loop{}.{}", looping ? 1 : 0, varlen ? "varlen" : "causal");
  }

  GoldenFixture data_, params_;
  ModelConfig model_;
  std::vector<std::int32_t> tokens_, targets_;
  std::unique_ptr<Backend> backend_;
};

TEST_P(LaterModelGolden, TrainingLossGradientsAndBlocks) {
  for (const auto& [looping, varlen] : modes()) {
    const std::string mode = prefix(looping, varlen);
    SCOPED_TRACE(mode);
    const auto model = run(model_, looping, varlen, HeadUse::training, true);
    EXPECT_LE(largest_difference(model->pre_logits(), data_.doubles(mode + ".pre_logits")), value_tolerance);
    EXPECT_LE(largest_difference(model->token_loss(), data_.doubles(mode + ".token_loss")), value_tolerance);
    EXPECT_NEAR(model->mean_loss(), data_.doubles(mode + ".mean_loss").at(0), mean_loss_tolerance);
    int compared = 0, blocks = 0;
    for (const ParameterLayout& layout : model->parameters()) {
      const std::string& name = layout.spec.name;
      const std::vector<float> ours = model->gradient(name);
      if (name.starts_with("softcap_")) {  // they are not part of the training loss
        EXPECT_EQ(ours, std::vector<float>{0}) << name;
        continue;
      }
      const std::vector<double> expected = data_.doubles(mode + ".grad." + name);
      EXPECT_LE(largest_difference(ours, expected), gradient_tolerance * largest_magnitude(expected)) << name;
      ++compared;
    }
    EXPECT_GT(compared, 0);
    for (const std::string& name : data_.names()) {
      if (!varlen || !name.starts_with(mode + ".act.")) continue;
      const std::int64_t slot = std::stoll(name.substr(mode.size() + 5, 2));
      std::vector<float> ours = model->point(fmt::format("layers.{}.block", slot));
      if (name.ends_with(".parallel")) {
        const std::vector<float> lane1 = model->point(fmt::format("layers.{}.lane1", slot));
        ours.insert(ours.end(), lane1.begin(), lane1.end());
      }
      const std::vector<double> expected = data_.doubles(name);
      EXPECT_LE(largest_difference(ours, expected), 2e-5 * std::max(1.0, largest_magnitude(expected)))
          << name;
      ++blocks;
    }
    EXPECT_EQ(blocks > 0, varlen);
  }
}

TEST_P(LaterModelGolden, ScoresAndTheCapsGradients) {
  for (const auto& [looping, varlen] : modes()) {
    const std::string mode = prefix(looping, varlen) + ".eval";
    SCOPED_TRACE(mode);
    const auto model = run(model_, looping, varlen, HeadUse::scoring, true);
    EXPECT_LE(largest_difference(model->token_loss(), data_.doubles(mode + ".token_loss")), value_tolerance);
    EXPECT_NEAR(model->mean_loss(), data_.doubles(mode + ".mean_loss").at(0), mean_loss_tolerance);
    if (data_.has(mode + ".logits")) {
      EXPECT_LE(largest_difference(model->logits(), data_.doubles(mode + ".logits")), value_tolerance);
    }
    const std::vector<double> expected = data_.doubles(mode + ".grad_softcap");
    const std::vector<float> ours = {model->gradient("softcap_pos").at(0),
                                     model->gradient("softcap_neg").at(0)};
    EXPECT_LE(largest_difference(ours, expected), gradient_tolerance * largest_magnitude(expected));
  }
}

// One switch changed at a time: no element can be left out, or done otherwise, unseen.
TEST_P(LaterModelGolden, EverySwitchChangesTheLossAsInTheReference) {
  int compared = 0;
  for (const auto& [name, loss] : data_.manifest().at("variant_losses").items()) {
    if (name == "note") continue;
    SCOPED_TRACE(name);
    ModelConfig model = model_;
    if (name == "smear_off") {
      model.elements["smear_gate.window"] = ConfigValue(std::int64_t{0});
    } else if (name == "smear_without_bos_mask") {
      model.elements["smear_gate.document_start"] = ConfigValue(std::int64_t{-1});
    } else if (name == "sparse_gate_off") {
      model.elements["sparse_gate.window"] = ConfigValue(std::int64_t{0});
    } else if (name == "sparse_gate_scale_1") {
      model.elements["sparse_gate.scale"] = ConfigValue(1.0);
    } else if (name == "xsa_off") {
      model.xsa_last_layers = 0;
    } else {
      ADD_FAILURE() << "this test does not know the variant";
      continue;
    }
    const auto runner = run(model, true, true, HeadUse::training, false);
    EXPECT_NEAR(runner->mean_loss(), loss.get<double>(), mean_loss_tolerance);
    ++compared;
  }
  EXPECT_GT(compared, 0);
}

INSTANTIATE_TEST_SUITE_P(Kernels, LaterModelGolden,
                         testing::Values(GoldenKernels::plain, GoldenKernels::fused, GoldenKernels::cuda),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace mulligan::later_model_golden_test
