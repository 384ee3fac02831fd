// The family qwen2 against a model written in plain PyTorch (make_qwen2.py): logits, losses, every point of
// the forward pass, gradients and training steps in fp32, from the files as published models have them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "framework/checkpoint/qwen2_config.h"
#include "framework/run/weights.h"
#include "tests/golden/golden_fixture.h"
#include "tests/support/model_runner.h"
#include "tests/support/plugin_runner.h"

namespace mulligan::qwen2_golden_test {
namespace {

// Of the reference's root mean square: what an fp32 implementation is off at most.
constexpr double tolerance = 1e-5;

double rms(const std::vector<double>& values) {
  double squares = 0;
  for (const double value : values) squares += value * value;
  return std::sqrt(squares / static_cast<double>(values.size()));
}

// Largest difference over the rms of `theirs`; infinite where sizes differ or a number is none.
double distance(const std::vector<float>& ours, const std::vector<double>& theirs) {
  if (ours.size() != theirs.size()) return INFINITY;
  double largest = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    largest = std::max(largest, std::isnan(ours[i]) ? INFINITY : std::abs(ours[i] - theirs[i]));
  }
  return largest / rms(theirs);
}

// The root mean square of the differences over that of `theirs`.
double mean_distance(const std::vector<float>& ours, const std::vector<double>& theirs) {
  if (ours.size() != theirs.size()) return INFINITY;
  std::vector<double> differences;
  for (std::size_t i = 0; i < ours.size(); ++i) differences.push_back(ours[i] - theirs[i]);
  return rms(differences) / rms(theirs);
}

class Qwen2Golden : public testing::TestWithParam<const char*> {
 protected:
  Qwen2Golden()
      : folder_(own_fixture(GetParam())),
        data_(folder_),
        model_(read_qwen2_config(folder_.path / "config.json").model),
        tokens_(data_.ints("tokens")),
        targets_(data_.ints("targets")),
        backend_(make_test_backend()) {
    const std::vector<ParameterSpec> specs = model_parameters(model_);
    const std::vector<std::vector<float>> values = read_weights(weights_file(folder_.path), specs);
    for (std::size_t i = 0; i < specs.size(); ++i) weights_[specs[i].name] = values[i];
  }

  std::vector<std::int32_t> segments(const std::string& kind) const {
    if (kind == "varlen") return data_.ints("cu_seqlens");
    return {0, static_cast<std::int32_t>(tokens_.size())};
  }

  std::unique_ptr<ModelRunner> runner(const std::string& kind, bool gradients, bool points = false) {
    ModelRunner::Options options;
    options.gradients = gradients;
    options.keep_points = points;
    options.segments = segments(kind).size();
    auto result =
        std::make_unique<ModelRunner>(*backend_, model_, static_cast<std::int64_t>(tokens_.size()), options);
    for (const auto& [name, values] : weights_) result->set_parameter(name, values);
    return result;
  }

  FixtureFolder folder_;
  GoldenFixture data_;
  ModelConfig model_;
  std::vector<std::int32_t> tokens_, targets_;
  std::unique_ptr<Backend> backend_;
  std::map<std::string, std::vector<float>> weights_;
};

TEST_P(Qwen2Golden, LogitsAndLossesInOneSegmentAndInSeveral) {
  for (const std::string kind : {"causal", "varlen"}) {
    SCOPED_TRACE(kind);
    const auto model = runner(kind, false);
    model->run(tokens_, targets_, segments(kind));
    const double logits = distance(model->logits(), data_.doubles(kind + ".logits"));
    std::printf("%s %s: logits differ by %.2e of their rms\n", GetParam(), kind.c_str(), logits);
    EXPECT_LE(logits, tolerance);
    EXPECT_LE(distance(model->token_loss(), data_.doubles(kind + ".token_loss")), tolerance);
    const double mean = data_.doubles(kind + ".mean_loss").at(0);
    EXPECT_NEAR(model->mean_loss(), mean, tolerance * mean);
  }
}

TEST_P(Qwen2Golden, GradientsOfEveryParameter) {
  const auto model = runner("varlen", true);
  model->run(tokens_, targets_, segments("varlen"));
  double worst = 0, worst_element = 0;
  for (const auto& [name, values] : weights_) {
    const std::vector<double> expected = data_.doubles("varlen.grad." + name);
    const double found = mean_distance(model->gradient(name), expected);
    const double element = distance(model->gradient(name), expected);
    EXPECT_LE(found, tolerance) << name;
    // One of thousands, sums of fp32 that cancel. Attention's backward pass computes probabilities again from lse and takes delta
    // from o, like FlashAttention, and this affects the gradients of q and k. On qwen2_untied one element of layer 1's
    // q_proj.weight is 2.1e-5 off here (AVX2). It is 1.9e-5 off with PyTorch's own CPU kernel of that algorithm in fp32, and 1.0e-5
    // with its plain attention, which keeps the probabilities.
    const bool of_queries_or_keys = name.find("q_proj") != name.npos || name.find("k_proj") != name.npos;
    EXPECT_LE(element, (of_queries_or_keys ? 3 : 2) * tolerance) << name;
    worst = std::max(worst, found);
    worst_element = std::max(worst_element, element);
  }
  std::printf("%s: gradients differ by %.2e of their rms, one element by %.2e\n", GetParam(), worst,
              worst_element);
}

// In the order of the pass: the first that fails is the op at fault.
TEST_P(Qwen2Golden, EveryPointOfTheForwardPass) {
  const auto model = runner("varlen", false, true);
  model->run(tokens_, targets_, segments("varlen"));
  std::size_t compared = 0;
  for (const std::string& name : model->points()) {
    ASSERT_LE(distance(model->point(name), data_.doubles("varlen.tap." + name)), tolerance) << name;
    ++compared;
  }
  EXPECT_EQ(compared, std::ranges::count_if(
                          data_.names(), [](const auto& name) { return name.starts_with("varlen.tap."); }));
}

// Steps of the plugin sgd on the same batch.
TEST_P(Qwen2Golden, TrainingSteps) {
  const nlohmann::json& settings = data_.manifest().at("train");
  const auto model = runner("varlen", true);
  std::vector<plugin_test::OptimizerRunner::Parameter> parameters;
  for (const ParameterLayout& layout : model->parameters()) {
    parameters.push_back({layout.spec.name, layout.spec.type, weights_.at(layout.spec.name)});
  }
  plugin_test::OptimizerRunner sgd("sgd", fmt::format("momentum = {}", settings.at("momentum").get<double>()),
                                   parameters);
  const std::vector<double> losses = data_.doubles("train.losses");
  for (std::size_t step = 0; step < losses.size(); ++step) {
    model->run(tokens_, targets_, segments("varlen"));
    EXPECT_NEAR(model->mean_loss(), losses[step], tolerance * losses[step]) << step;
    std::map<std::string, std::vector<float>> gradients;
    for (const auto& [name, values] : weights_) gradients[name] = model->gradient(name);
    sgd.step(gradients, settings.at("learning_rate").get<double>());
    for (const auto& [name, values] : weights_) model->set_parameter(name, sgd.master(name));
  }
  ASSERT_EQ(losses.size(), settings.at("steps").get<std::size_t>());
  for (const auto& [name, values] : weights_) {
    EXPECT_LE(distance(sgd.master(name), data_.doubles("train.after." + name)), tolerance) << name;
  }
}

// Causality: another last token leaves every earlier position's logits bit for bit the same.
TEST_P(Qwen2Golden, LaterTokensDoNotMoveEarlierLogits) {
  const auto model = runner("causal", false);
  model->run(tokens_, targets_, segments("causal"));
  const std::vector<float> before = model->logits();
  std::vector<std::int32_t> changed = tokens_;
  changed.back() = (changed.back() + 1) % static_cast<std::int32_t>(model_.vocabulary);
  model->run(changed, targets_, segments("causal"));
  const std::vector<float> after = model->logits();
  const auto last = static_cast<std::ptrdiff_t>(before.size() - static_cast<std::size_t>(model_.vocabulary));
  EXPECT_TRUE(std::equal(before.begin(), before.begin() + last, after.begin()));
  EXPECT_FALSE(std::equal(before.begin() + last, before.end(), after.begin() + last));
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Qwen2Golden, testing::Values("qwen2", "qwen2_untied"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace mulligan::qwen2_golden_test
