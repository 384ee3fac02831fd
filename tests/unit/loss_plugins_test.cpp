// The two cross-entropy plugins must agree where they mean the same thing.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/support/plugin_runner.h"

namespace mulligan::loss_plugins_test {
namespace {

struct Batch {
  std::vector<float> logits, upstream;
  std::vector<std::int32_t> targets;
};

Batch random_batch(std::int64_t rows, std::int64_t columns) {
  std::mt19937 random(4);
  std::normal_distribution<float> normal(0.0f, 8.0f);
  Batch batch;
  for (std::int64_t i = 0; i < rows * columns; ++i) batch.logits.push_back(normal(random));
  for (std::int64_t row = 0; row < rows; ++row) {
    batch.upstream.push_back(normal(random));
    batch.targets.push_back(row == 2 ? -1 : static_cast<std::int32_t>(random() % columns));
  }
  return batch;
}

// A model without a softcap hands softcap 0 to softcap_ce: plain cross entropy, which the backend
// computes by itself.
TEST(LossPlugins, SoftcapCeWithoutCapIsCrossEntropy) {
  const std::int64_t rows = 9, columns = 1201;
  const Batch b = random_batch(rows, columns);
  const auto fused =
      plugin_test::run_loss("softcap_ce", MLG_F32, 0.0, columns, b.logits, b.targets, b.upstream);
  const auto plain =
      plugin_test::run_loss("cross_entropy", MLG_F32, 0.0, columns, b.logits, b.targets, b.upstream);
  for (std::int64_t row = 0; row < rows; ++row) {
    EXPECT_NEAR(fused.token_loss[row], plain.token_loss[row], 1e-5) << row;
  }
  for (std::int64_t i = 0; i < rows * columns; ++i)
    EXPECT_NEAR(fused.gradient[i], plain.gradient[i], 1e-5) << i;
}

TEST(LossPlugins, NegativeTargetsGiveNeitherLossNorGradient) {
  const std::int64_t columns = 77;
  const Batch b = random_batch(4, columns);
  for (const std::string plugin : {"softcap_ce", "cross_entropy"}) {
    for (const DType dtype : {MLG_F32, MLG_BF16}) {
      const auto result = plugin_test::run_loss(plugin, dtype, 0.0, columns, b.logits, b.targets, b.upstream);
      EXPECT_EQ(result.token_loss[2], 0.0f) << plugin;
      EXPECT_GT(result.token_loss[1], 0.0f) << plugin;
      for (std::int64_t i = 0; i < columns; ++i) EXPECT_EQ(result.gradient[2 * columns + i], 0.0f) << plugin;
    }
  }
}

// The gradient of a row sums to zero without a cap (probabilities sum to one).
TEST(LossPlugins, GradientOfARowSumsToZero) {
  const std::int64_t rows = 9, columns = 1201;
  const Batch b = random_batch(rows, columns);
  for (const std::string plugin : {"softcap_ce", "cross_entropy"}) {
    const auto result = plugin_test::run_loss(plugin, MLG_F32, 0.0, columns, b.logits, b.targets, b.upstream);
    for (std::int64_t row = 0; row < rows; ++row) {
      double sum = 0.0;
      for (std::int64_t i = 0; i < columns; ++i) sum += result.gradient[row * columns + i];
      EXPECT_NEAR(sum, 0.0, 2e-5) << plugin << ", row " << row;
    }
  }
}

}  // namespace
}  // namespace mulligan::loss_plugins_test
