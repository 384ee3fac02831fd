// The dense gate as an element; its numbers: kernels/head_gate_xsa, tests/golden/model_golden_test.cpp.
#include <gtest/gtest.h>

#include <cmath>

#include "framework/model/initialise.h"
#include "tests/support/element_testing.h"

namespace mulligan::dense_gate_test {
namespace {

TEST(DenseGateElement, HasAWeightOfTheWholeWidthInEachLayer) {
  const std::vector<ParameterSpec> own = element_parameters(element_model({"model.attention_gate=true"}));
  ASSERT_EQ(own.size(), 2u);
  EXPECT_EQ(own[1].name, "blocks.1.attn.attn_gate_w");
  EXPECT_EQ(own[1].type, TensorType(MLG_F32, {4, 16}));
  double squares = 0;
  for (const float value : initial_values(own[1], 7)) squares += value * value;
  EXPECT_NEAR(std::sqrt(squares / 64), 0.005, 0.002);
}

// With XSA as well one call does both.
TEST(DenseGateElement, SharesACallWithXsa) {
  EXPECT_EQ(count_calls(element_model(), "head_gate_xsa_fwd"), 0);
  EXPECT_EQ(count_calls(element_model({"model.attention_gate=true"}), "head_gate_xsa_fwd"), 2);
  EXPECT_EQ(count_calls(element_model({"model.attention_gate=true", "model.xsa_last_layers=2"}),
                        "head_gate_xsa_fwd"),
            2);
}

}  // namespace
}  // namespace mulligan::dense_gate_test
