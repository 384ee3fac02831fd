// The model on the cuda backend (test_device.h) against the cpu backend, and with fused kernels against without
// them on either: every logit and gradient in f32, the logits' direction in bf16, in both layer orders.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/end_to_end/tiny_run.h"
#include "tests/support/fused_model.h"
#include "tests/support/test_device.h"

namespace mulligan::end_to_end::cuda_model_test {
namespace {

// Two documents.
ModelResult run(Backend& backend, bool looping, DType compute, const std::vector<std::string>& keys = {}) {
  return run_model(backend, TinyRun::config_without_data(keys).config.model,
                   looping ? LayerOrderKind::looped : LayerOrderKind::plain, compute,
                   {.tokens = 64, .cut = 41, .first_id = 2, .ids = 300});
}

double dot(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}
double cosine(const std::vector<float>& a, const std::vector<float>& b) {
  return dot(a, b) / std::sqrt(dot(a, a) * dot(b, b));
}

std::unique_ptr<Backend> cuda() {
  return make_plugin<Backend>(MLG_BACKEND, "cuda", "device = \"" + test_device() + "\"");
}

TEST(CudaModel, LogitsAndGradientsInF32) {
  const auto device = cuda(), host = make_cpu_backend(1);
  for (const bool looping : {false, true}) {
    const ModelResult ours = run(*device, looping, MLG_F32), expected = run(*host, looping, MLG_F32);
    EXPECT_LE(difference(ours.logits, expected.logits), 2e-5) << "looping " << looping;
    for (const auto& [name, gradient] : expected.gradients) {
      EXPECT_LE(difference(ours.gradients.at(name), gradient), 2e-5) << name << ", looping " << looping;
    }
  }
}

TEST(CudaModel, LogitsInBf16PointTheSameWay) {
  const auto device = cuda(), host = make_cpu_backend(1);
  for (const bool looping : {false, true}) {
    const ModelResult ours = run(*device, looping, MLG_BF16), expected = run(*host, looping, MLG_BF16);
    EXPECT_GE(cosine(ours.logits, expected.logits), 0.999) << "looping " << looping;
    EXPECT_LE(difference(ours.logits, expected.logits), 2e-2) << "looping " << looping;
    // The same in f32, so that both being wrong alike would be seen.
    EXPECT_GE(cosine(ours.logits, run(*host, looping, MLG_F32).logits), 0.999) << "looping " << looping;
  }
}

// The largest difference between fused and plain: every kernel of either is near the exact result.
void expect_fused_is_plain(Backend& backend, const std::vector<std::string>& keys) {
  for (const bool looping : {false, true}) {
    SCOPED_TRACE(fmt::format("looping {}, {}", looping, fmt::join(keys, " ")));
    backend.set_fused_kernels(true);
    const ModelResult fused = run(backend, looping, MLG_F32, keys);
    backend.set_fused_kernels(false);
    const ModelResult plain = run(backend, looping, MLG_F32, keys);
    EXPECT_GT(fused.fused_calls, 0);
    EXPECT_EQ(plain.fused_calls, 0);
    EXPECT_LE(difference(fused.logits, plain.logits), 1e-5);
    for (const auto& [name, gradient] : plain.gradients) {
      EXPECT_LE(difference(fused.gradients.at(name), gradient), 2e-5) << name;  // matmuls of scaled weights
    }
  }
}

const std::vector<std::vector<std::string>> kVariants = {
    {},
    {"model.attention_gate=false"},
    {"model.attention_gate=false", "model.smear_gate.window=12", "model.sparse_gate.window=12"},
    {"model.attention_gate=false", "model.smear_gate.window=5", "model.smear_gate.document_start=-1",
     "model.sparse_gate.window=7", "model.sparse_gate.scale=2", "model.xsa_last_layers=2"},
    {"model.qk_norm=false", "model.q_gain=0"},
    {"model.xsa_last_layers=0"},
    {"model.skip_weights=false", "model.skip_gates=false"},  // both lanes begin as one tensor
    {"model.width=24", "model.kv_heads=4", "model.head_width=6", "model.rope.dims=6"}};

TEST(FusedModel, IsThePlainOneOnTheCpuBackend) {
  const auto host = make_cpu_backend(2);
  for (const std::vector<std::string>& keys : kVariants) expect_fused_is_plain(*host, keys);
}

TEST(FusedModel, IsThePlainOneOnTheCudaBackend) {
  const auto device = cuda();
  for (const std::vector<std::string>& keys : kVariants) expect_fused_is_plain(*device, keys);
}

TEST(FusedModel, Bf16PointsTheSameWay) {
  const auto device = cuda(), host = make_cpu_backend(1);
  for (Backend* backend : {device.get(), host.get()}) {
    for (const bool looping : {false, true}) {
      const ModelResult fused = run(*backend, looping, MLG_BF16);
      backend->set_fused_kernels(false);
      const ModelResult plain = run(*backend, looping, MLG_BF16);
      backend->set_fused_kernels(true);
      EXPECT_GE(cosine(fused.logits, plain.logits), 0.999) << "looping " << looping;
      EXPECT_LE(difference(fused.logits, plain.logits), 2e-2) << "looping " << looping;
      for (const auto& [name, gradient] : plain.gradients) {
        EXPECT_GE(cosine(fused.gradients.at(name), gradient), 0.99) << name << ", looping " << looping;
      }
    }
  }
}

}  // namespace
}  // namespace mulligan::end_to_end::cuda_model_test
