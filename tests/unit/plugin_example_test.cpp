// plugins/example, built by CMake from an installed SDK through find_package(mulligan).
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "framework/plugin/plugin_listing.h"
#include "tests/support/built.h"
#include "tests/support/plugin_runner.h"

namespace mulligan::plugin_example_test {
namespace {

const std::filesystem::path kFolder = test_support::built("lion");

TEST(ExamplePlugin, IsFoundInItsFolderAndTellsItsKeys) {
  PluginHost host({{"--plugin-path", kFolder}});
  const PluginHandle plugin = host.load(MLG_OPTIMIZER, "lion");
  EXPECT_EQ(plugin->path(), std::filesystem::canonical(kFolder / "mulligan_lion.so"));
  EXPECT_EQ(plugin->abi(), "1.0");
  EXPECT_EQ(plugin->state_version(), 1u);
  const std::string text = describe_plugin(host, "lion", false);
  EXPECT_NE(text.find("beta2"), std::string::npos) << text;
  EXPECT_NE(text.find("kernel  lion_step on cpu: in gradient, inout master"), std::string::npos) << text;
}

TEST(ExamplePlugin, ItsOwnKernelFollowsTheFormula) {
  test_plugin_host().load(MLG_OPTIMIZER, "lion", kFolder / "mulligan_lion.so");
  constexpr std::int64_t kCount = 40'003;  // several pieces of the parallel loop and a ragged end
  constexpr double kBeta1 = 0.8, kBeta2 = 0.95, kDecay = 0.1, kMultiplier = 2.0;
  std::vector<float> initial(kCount), gradient(kCount);
  std::vector<double> p(kCount), m(kCount, 0.0);
  for (std::int64_t i = 0; i < kCount; ++i) p[i] = initial[i] = std::sin(0.01f * static_cast<float>(i));
  plugin_test::OptimizerRunner runner("lion", "beta1 = 0.8\nbeta2 = 0.95\nweight_decay = 0.1",
                                      {{"w", {MLG_F32, {kCount}}, initial, kMultiplier, 1.0}});
  for (int step = 1; step <= 4; ++step) {
    const double lr = 0.01 / step;
    for (std::int64_t i = 0; i < kCount; ++i) {
      // Exact zeros (sign 0) in every hundredth place; elsewhere never so small that rounding decides a sign.
      gradient[i] =
          i % 100 == 0 ? 0.0f
                       : (((i * step) % 7 < 3) ? 1.0f : -1.0f) * (0.5f + 0.001f * static_cast<float>(i % 50));
      const double c = kBeta1 * m[i] + (1 - kBeta1) * gradient[i];
      p[i] = p[i] * (1 - lr * kMultiplier * kDecay) - lr * kMultiplier * ((c > 0) - (c < 0));
      m[i] = kBeta2 * m[i] + (1 - kBeta2) * gradient[i];
    }
    runner.step({{"w", gradient}}, lr);
  }
  const std::vector<float> master = runner.master("w"), momentum = runner.state("w.momentum");
  for (std::int64_t i = 0; i < kCount; ++i) {
    ASSERT_NEAR(master[i], p[i], 1e-6) << "element " << i;
    ASSERT_NEAR(momentum[i], m[i], 1e-6) << "element " << i;
  }
}

// mulligan_cuda_sources() of the installed package: the kernel's text is in the library, and compiles for the host.
TEST(ExamplePlugin, APluginOutOfTreeBringsCudaKernels) {
  const std::filesystem::path file = test_support::built("with_cuda") / "mulligan_halving.so";
  const PluginHandle plugin = test_plugin_host().load(MLG_OPTIMIZER, "halving", file);
  ASSERT_EQ(plugin->kernels().size(), 1u);
  EXPECT_STREQ(plugin->kernels()[0].backend, "cuda");
  EXPECT_NE(std::string(plugin->kernels()[0].source).find("__global__ void halving_step"), std::string::npos);
}

}  // namespace
}  // namespace mulligan::plugin_example_test
