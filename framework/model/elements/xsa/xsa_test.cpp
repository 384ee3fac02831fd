// XSA as an element; its numbers: kernels/head_gate_xsa, tests/golden/model_golden_test.cpp.
#include <gtest/gtest.h>

#include "tests/support/element_testing.h"

namespace mulligan::xsa_test {
namespace {

TEST(XsaElement, ActsInTheLastLayers) {
  for (const int layers : {0, 1, 2}) {
    const ModelConfig model = element_model({"model.xsa_last_layers=" + std::to_string(layers)});
    EXPECT_EQ(count_calls(model, "head_gate_xsa_fwd"), layers);
    EXPECT_TRUE(element_parameters(model).empty());
  }
  EXPECT_EQ(count_calls(element_model({"model.xsa_last_layers=-1"}), "head_gate_xsa_fwd"), 2);
}

TEST(XsaElement, MoreLayersThanThereAreAreRefused) {
  EXPECT_NE(element_refusal({"model.xsa_last_layers=3"}).find("there are only"), std::string::npos);
}

}  // namespace
}  // namespace mulligan::xsa_test
