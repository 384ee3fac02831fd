// Whole training runs: they learn, repeat bit for bit, and do not depend on what must not matter.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/end_to_end/tiny_run.h"

namespace mulligan::end_to_end {
namespace {

TinyRun& tiny() {
  static TinyRun run;
  return run;
}

const double uniform_loss = std::log(static_cast<double>(tiny_vocabulary));

[[maybe_unused]] double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return INFINITY;
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

TEST(Train, StartsAtTheUniformLossAndLearns) {
  const RunResult result = tiny().train({"train.steps=150", "schedule.plugin=warmdown"});
  EXPECT_NEAR(result.initial_loss_nats, uniform_loss, 0.05);
  EXPECT_LT(result.final_loss_nats, 0.5 * uniform_loss);
  ASSERT_TRUE(result.validation);
  EXPECT_LT(result.validation->val_loss_nats, 0.5 * uniform_loss);
  EXPECT_GT(result.validation->bytes, result.validation->tokens);
  EXPECT_NEAR(
      result.validation->val_bpb,
      result.validation->loss_sum_nats / std::log(2.0) / static_cast<double>(result.validation->bytes),
      1e-12);
  EXPECT_EQ(result.steps, 150);
  EXPECT_EQ(result.step_loss_nats.size(), 150u);
  EXPECT_EQ(result.tokens, 150 * 256);
}

}  // namespace
}  // namespace mulligan::end_to_end
