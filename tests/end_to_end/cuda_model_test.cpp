// The model on the cuda backend (test_device.h) against the cpu backend: every logit and gradient in f32, the
// logits' direction in bf16, in both layer orders.
#include <gtest/gtest.h>

#include <cmath>

#include "framework/core/philox.h"
#include "framework/model/initialise.h"
#include "tests/end_to_end/tiny_run.h"
#include "tests/support/model_runner.h"
#include "tests/support/test_device.h"

namespace mulligan::end_to_end {
namespace {

constexpr std::int64_t kTokens = 64;

struct Result {
  std::vector<float> logits;
  std::map<std::string, std::vector<float>> gradients;
};

// Two documents, weights drawn so that no part of the model is idle.
Result run(Backend& backend, bool looping, DType compute) {
  const ModelConfig model = TinyRun::config_without_data({}).config.model;
  ModelRunner::Options options;
  options.layer_order = looping ? LayerOrderKind::looped : LayerOrderKind::plain;
  options.compute = compute;
  options.segments = 3;
  ModelRunner runner(backend, model, kTokens, options);
  for (const ParameterLayout& layout : runner.parameters()) {
    std::vector<float> values = initial_values(layout.spec, 5);
    const PhiloxStream noise(5, "noise/" + layout.spec.name);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += static_cast<float>(0.1 * noise.normal(i));
    runner.set_parameter(layout.spec.name, values);
  }
  std::vector<std::int32_t> tokens, targets;
  for (std::int32_t i = 0; i < kTokens; ++i) {
    tokens.push_back(2 + i * 37 % 300);
    targets.push_back(2 + i * 53 % 300);
  }
  runner.run(tokens, targets, {0, 41, static_cast<std::int32_t>(kTokens)});
  Result result{runner.logits(), {}};
  for (const ParameterLayout& layout : runner.parameters()) {
    result.gradients[layout.spec.name] = runner.gradient(layout.spec.name);
  }
  return result;
}

double dot(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}
double cosine(const std::vector<float>& a, const std::vector<float>& b) {
  return dot(a, b) / std::sqrt(dot(a, a) * dot(b, b));
}

// The largest difference, in units of the largest element of `b`.
double difference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return HUGE_VAL;
  float largest = 0, scale = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::isfinite(a[i]) ? std::abs(a[i] - b[i]) : HUGE_VALF);
    scale = std::max(scale, std::abs(b[i]));
  }
  return scale == 0 ? largest : largest / scale;
}

std::unique_ptr<Backend> cuda() {
  return make_plugin<Backend>(PluginKind::backend, "cuda", "device = \"" + test_device() + "\"");
}

TEST(CudaModel, LogitsAndGradientsInF32) {
  const auto device = cuda(), processor = make_cpu_backend(1);
  for (const bool looping : {false, true}) {
    const Result ours = run(*device, looping, MLG_F32), expected = run(*processor, looping, MLG_F32);
    EXPECT_LE(difference(ours.logits, expected.logits), 2e-5) << "looping " << looping;
    for (const auto& [name, gradient] : expected.gradients) {
      EXPECT_LE(difference(ours.gradients.at(name), gradient), 2e-5) << name << ", looping " << looping;
    }
  }
}

TEST(CudaModel, LogitsInBf16PointTheSameWay) {
  const auto device = cuda(), processor = make_cpu_backend(1);
  for (const bool looping : {false, true}) {
    const Result ours = run(*device, looping, MLG_BF16), expected = run(*processor, looping, MLG_BF16);
    EXPECT_GE(cosine(ours.logits, expected.logits), 0.999) << "looping " << looping;
    EXPECT_LE(difference(ours.logits, expected.logits), 2e-2) << "looping " << looping;
    // The same in f32, so that both being wrong alike would be seen.
    EXPECT_GE(cosine(ours.logits, run(*processor, looping, MLG_F32).logits), 0.999) << "looping " << looping;
  }
}

}  // namespace
}  // namespace mulligan::end_to_end
