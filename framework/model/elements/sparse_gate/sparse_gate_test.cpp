// The sparse gate as an element; its numbers: tests/golden/later_model_golden_test.cpp.
#include <gtest/gtest.h>

#include "framework/model/initialise.h"
#include "tests/support/element_testing.h"

namespace mulligan::sparse_gate_test {
namespace {

const std::string on = "model.sparse_gate.window=5";

TEST(SparseGateElement, HasAWeightOfTheWindowInEachLayerThatBeginsAtZero) {
  const std::vector<ParameterSpec> own = element_parameters(element_model({on}));
  ASSERT_EQ(own.size(), 2u);
  EXPECT_EQ(own[0].name, "blocks.0.attn.attn_gate_w");
  EXPECT_EQ(own[0].type, TensorType(MLG_F32, {4, 5}));
  EXPECT_EQ(initial_values(own[0], 7), std::vector<float>(20, 0.0F));
}

// The weight's window is widened once for each layer, however often the layer runs.
TEST(SparseGateElement, SharesACallWithXsa) {
  const std::vector<std::string> keys = {on, "model.xsa_last_layers=2", "model.loop.first=0",
                                         "model.loop.last=1", "model.loop.extra_passes=1"};
  EXPECT_EQ(count_calls(element_model(keys), "head_gate_xsa_fwd"), 4);
  EXPECT_EQ(count_calls(element_model(keys), "concat_rows_fwd"), 2);
  EXPECT_EQ(count_calls(element_model({"model.sparse_gate.window=16"}), "concat_rows_fwd"), 0);
}

TEST(SparseGateElement, KeysThatCannotHoldAreRefused) {
  EXPECT_NE(element_refusal({"model.sparse_gate.window=17"}).find("has only"), std::string::npos);
  EXPECT_NE(element_refusal({on, "model.attention_gate=true"}).find("a head has one gate"),
            std::string::npos);
  EXPECT_NE(element_refusal({"model.family=qwen2", on}).find("has no such part"), std::string::npos);
}

}  // namespace
}  // namespace mulligan::sparse_gate_test
