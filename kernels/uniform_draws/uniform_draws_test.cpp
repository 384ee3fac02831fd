// uniform_draws: the bits of the host's definition (framework/core/philox.h).
#include <gtest/gtest.h>

#include "framework/core/philox.h"
#include "tests/kernels/backend_fixture.h"
#include "tests/kernels/operator_tests.h"
#include "tests/kernels/row_probe.h"

namespace mulligan::kernel_test::uniform_draws_test {
namespace {

const CoversKernel covers_uniform_draws("uniform_draws");

// Bounds as adapters have them (1 / sqrt(512)), one whose 53 bits all matter, and small and large ones.
TEST(UniformDraws, AreTheHostsBits) {
  for (const double bound : {0.04419417382415922, 1.0 / 3, 3e-20, 1e6}) {
    for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{0xFEDCBA9876543210}}) {
      const PhiloxStream stream(seed, "ttt/3/q/0/A");
      const std::array<std::int32_t, 4> key = stream.key();
      std::vector<double> expected;
      for (std::uint64_t i = 0; i < 5000; ++i)
        expected.push_back(static_cast<float>(bound * (2.0 * stream.uniform(i) - 1.0)));
      for (const int variant : {1, 2, 3}) {
        const KernelResult result = backend_with_threads(variant).run(kernel_call(
            "uniform_draws", "key values",
            {{MLG_I32, {4}, {key.begin(), key.end()}}, {MLG_F32, {50, 100}, {}}}, {{"bound", bound}}));
        EXPECT_EQ(result.written.at("values").values, expected);
      }
    }
  }
}

const RegisterRows registered_rows{{"uniform_draws", "key:4/i values:d/f", "bound=1"}};

}  // namespace
}  // namespace mulligan::kernel_test::uniform_draws_test
