// The one forward pass and its derivative against the public reference (fixture folder model/).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/golden/differences.h"
#include "tests/golden/golden_fixture.h"
#include "tests/golden/golden_model.h"
#include "tests/support/model_runner.h"

namespace mulligan::model_golden_test {
namespace {

// Tolerances of the fixtures' README, section 11, for an f32 implementation.
constexpr double logits_tolerance = 1e-4;
constexpr double token_loss_tolerance = 1e-4;
constexpr double mean_loss_tolerance = 1e-5;
constexpr double gradient_tolerance = 1e-4;  // of the tensor's largest element

// With the fused kernels and without.
class ModelGolden : public testing::TestWithParam<bool> {
 protected:
  ModelGolden()
      : data_("model"),
        params_("model", "params.safetensors"),
        config_(data_.manifest().at("config")),
        tokens_(data_.ints("tokens")),
        targets_(data_.ints("targets")),
        backend_(make_test_backend()) {
    backend_->set_fused_kernels(GetParam());
  }

  std::vector<std::int32_t> segments(bool varlen) const {
    if (varlen) return data_.ints("cu_seqlens");
    return {0, static_cast<std::int32_t>(tokens_.size())};
  }

  std::unique_ptr<ModelRunner> runner(const ModelConfig& model, bool looping, bool varlen, bool gradients) {
    ModelRunner::Options options;
    options.layer_order = looping ? LayerOrderKind::looped : LayerOrderKind::plain;
    options.gradients = gradients;
    options.keep_points = gradients && varlen;
    options.segments = segments(varlen).size();
    auto runner =
        std::make_unique<ModelRunner>(*backend_, model, static_cast<std::int64_t>(tokens_.size()), options);
    for (const ParameterLayout& layout : runner->parameters()) {
      // Variants with fewer executed layers use the first rows of the skip tensors.
      std::vector<float> values = params_.floats(layout.spec.name);
      values.resize(static_cast<std::size_t>(layout.spec.type.elements()));
      runner->set_parameter(layout.spec.name, values);
    }
    return runner;
  }

  std::unique_ptr<ModelRunner> run(const ModelConfig& model, bool looping, bool varlen, bool gradients) {
    auto result = runner(model, looping, varlen, gradients);
    result->run(tokens_, targets_, segments(varlen));
    return result;
  }

  GoldenFixture data_, params_;
  nlohmann::json config_;
  std::vector<std::int32_t> tokens_, targets_;
  std::unique_ptr<Backend> backend_;
};

TEST_P(ModelGolden, ForwardAndGradientsInBothLayerOrdersAndBothMasks) {
  for (const bool looping : {false, true}) {
    for (const bool varlen : {true, false}) {
      const std::string prefix = fmt::format("loop{}.{}", looping ? 1 : 0, varlen ? "varlen" : "causal");
      SCOPED_TRACE(prefix);
      const auto model = run(golden_model(config_), looping, varlen, true);
      EXPECT_LE(largest_difference(model->pre_logits(), data_.doubles(prefix + ".pre_logits")),
                logits_tolerance);
      EXPECT_LE(largest_difference(model->logits(), data_.doubles(prefix + ".logits")), logits_tolerance);
      EXPECT_LE(largest_difference(model->token_loss(), data_.doubles(prefix + ".token_loss")),
                token_loss_tolerance);
      EXPECT_NEAR(model->mean_loss(), data_.doubles(prefix + ".mean_loss").at(0), mean_loss_tolerance);
      int compared = 0;
      for (const ParameterLayout& layout : model->parameters()) {
        const std::vector<double> expected = data_.doubles(prefix + ".grad." + layout.spec.name);
        EXPECT_LE(largest_difference(model->gradient(layout.spec.name), expected),
                  gradient_tolerance * largest_magnitude(expected))
            << layout.spec.name;
        ++compared;
      }
      EXPECT_GT(compared, 0);
    }
  }
}

TEST_P(ModelGolden, EveryExecutedBlock) {
  for (const bool looping : {false, true}) {
    const auto model = run(golden_model(config_), looping, true, true);
    const std::string prefix = fmt::format("loop{}.varlen.act.", looping ? 1 : 0);
    int compared = 0;
    for (const std::string& name : data_.names()) {
      if (!name.starts_with(prefix)) continue;
      const std::int64_t slot = std::stoll(name.substr(prefix.size(), 2));
      std::vector<float> ours = model->point(fmt::format("layers.{}.block", slot));
      if (name.ends_with(".parallel")) {
        const std::vector<float> lane1 = model->point(fmt::format("layers.{}.lane1", slot));
        ours.insert(ours.end(), lane1.begin(), lane1.end());
      }
      const std::vector<double> expected = data_.doubles(name);
      EXPECT_LE(largest_difference(ours, expected), 2e-5 * std::max(1.0, largest_magnitude(expected)))
          << name;
      ++compared;
    }
    EXPECT_GT(compared, 0);
  }
}

// The fixture's variants: one switch changed at a time, the mean loss of each mode.
TEST_P(ModelGolden, EverySwitchChangesTheLossAsInTheReference) {
  int compared = 0;
  for (const auto& [name, losses] : data_.manifest().at("variant_losses").items()) {
    SCOPED_TRACE(name);
    const std::string variant = name.substr(0, name.find('.'));
    const bool looping = name.find(".loop1.") != std::string::npos;
    const bool varlen = name.ends_with(".varlen");
    ModelConfig model = golden_model(config_);
    const auto number = [&] { return std::stoll(variant.substr(variant.rfind('_') + 1)); };
    std::vector<float> frequencies;
    if (variant == "final_lane_mean") {
      model.lanes.final_lane = FinalLane::mean;
    } else if (variant == "final_lane_mlp") {
      model.lanes.final_lane = FinalLane::mlp;
    } else if (variant == "final_lane_attn") {
      model.lanes.final_lane = FinalLane::attention;
    } else if (variant == "xsa_off") {
      model.xsa_last_layers = 0;
    } else if (variant.starts_with("xsa_last_")) {
      model.xsa_last_layers = number();
    } else if (variant == "ln_scale_off") {
      model.ln_scale = false;
    } else if (variant.starts_with("parallel_start_")) {
      model.lanes.parallel_start = number();
    } else if (variant == "rope_full_dims") {
      model.rope.dims = model.head_width;
    } else if (variant.starts_with("softcap_")) {
      model.softcap = static_cast<double>(number());
    } else if (variant == "gated_attn_off") {
      model.attention_gate = false;
    } else if (variant == "rope_inv_freq_bf16") {
      model.rope.table = RopeTable::bf16;
    } else if (variant == "skip_gates_off") {
      model.skip_gates = false;
    } else if (variant.starts_with("num_loops_")) {
      model.loop.extra_passes = number();
    } else {
      ADD_FAILURE() << "this test does not know the variant";
      continue;
    }
    EXPECT_NEAR(run(model, looping, varlen, false)->mean_loss(), losses.at("f64").get<double>(),
                mean_loss_tolerance);
    ++compared;
  }
  EXPECT_GT(compared, 0);
}

// Causality: changing a token leaves every earlier position's logits bit for bit the same.
TEST_P(ModelGolden, LaterTokensDoNotMoveEarlierLogits) {
  const auto model = runner(golden_model(config_), true, false, false);
  model->run(tokens_, targets_, segments(false));
  const std::vector<float> before = model->pre_logits();
  const std::size_t changed = tokens_.size() / 2;
  std::vector<std::int32_t> other = tokens_;
  for (std::size_t t = changed; t < other.size(); ++t) other[t] = 2 + (other[t] + 7) % 100;
  model->run(other, targets_, segments(false));
  const std::vector<float> after = model->pre_logits();
  const std::size_t width = before.size() / tokens_.size();
  EXPECT_TRUE(std::equal(before.begin(), before.begin() + static_cast<std::ptrdiff_t>(changed * width),
                         after.begin()));
  EXPECT_FALSE(std::equal(before.begin(), before.end(), after.begin()));
}

INSTANTIATE_TEST_SUITE_P(Kernels, ModelGolden, testing::Bool(),
                         [](const auto& info) { return info.param ? "fused" : "plain"; });

}  // namespace
}  // namespace mulligan::model_golden_test
