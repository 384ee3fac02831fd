// The smear gate as an element; its numbers: kernels/smear_gate, tests/golden/elements_golden_test.cpp.
#include <gtest/gtest.h>

#include "framework/model/elements/smear_gate/config.h"
#include "framework/model/initialise.h"
#include "tests/support/element_testing.h"

namespace mulligan::smear_gate_test {
namespace {

const std::string on = "model.smear_gate.window=5";

TEST(SmearGateElement, HasAWeightAndALambdaThatBeginAtZero) {
  const std::vector<ParameterSpec> own = element_parameters(element_model({on}));
  ASSERT_EQ(own.size(), 2u);
  EXPECT_EQ(own[0].name, "smear_gate.weight");
  EXPECT_EQ(own[0].type, TensorType(MLG_F32, {1, 5}));
  EXPECT_EQ(own[1].name, "smear_lambda");
  EXPECT_EQ(own[1].type, TensorType(MLG_F32, {1}));
  for (const ParameterSpec& spec : own) {
    for (const float value : initial_values(spec, 7)) EXPECT_EQ(value, 0.0F) << spec.name;
  }
}

// One call forward and one backward, before the first norm.
TEST(SmearGateElement, StandsBetweenTheEmbeddingAndTheFirstNorm) {
  const std::vector<std::string> calls = element_calls(element_model({on}));
  EXPECT_EQ(calls[0], "embedding_fwd");
  EXPECT_EQ(calls[1], "smear_gate_fwd");
  EXPECT_EQ(calls[2], "rms_norm_fwd");
  EXPECT_EQ(calls[calls.size() - 2], "smear_gate_bwd");
  EXPECT_EQ(calls.back(), "embedding_bwd");
  EXPECT_EQ(calls.size(), element_calls(element_model()).size() + 2);
}

TEST(SmearGateElement, KeysThatCannotHoldAreRefused) {
  EXPECT_NE(element_refusal({"model.smear_gate.window=17"}).find("has only"), std::string::npos);
  EXPECT_NE(element_refusal({on, "model.smear_gate.document_start=64"}).find("tokens are below"),
            std::string::npos);
  EXPECT_EQ(element_refusal({on, "model.smear_gate.document_start=-1"}), "");
  EXPECT_NE(element_refusal({"model.smear_gate.windw=5"}).find("window"), std::string::npos);
  EXPECT_NE(element_refusal({"model.family=qwen2", on}).find("has no such part"), std::string::npos);
}

// A mask at a token that begins no document would leave documents mixed without a word.
TEST(SmearGateElement, TheMaskIsTheTokenizersBos) {
  EXPECT_NO_THROW(check_tokenizer(element_model({on}), 1));
  EXPECT_THROW(check_tokenizer(element_model({on}), 2), Error);
  EXPECT_NO_THROW(check_tokenizer(element_model({on, "model.smear_gate.document_start=-1"}), 2));
  EXPECT_NO_THROW(check_tokenizer(element_model(), 2));
}

}  // namespace
}  // namespace mulligan::smear_gate_test
