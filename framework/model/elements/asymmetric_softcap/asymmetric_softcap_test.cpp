// The asymmetric softcap as an element; its numbers: kernels/asymmetric_softcap, tests/golden/later_model_golden_test.cpp.
#include <gtest/gtest.h>

#include "framework/model/initialise.h"
#include "tests/support/element_testing.h"

namespace mulligan::asymmetric_softcap_test {
namespace {

const std::vector<std::string> on = {"model.softcap=15", "model.asymmetric_softcap.enabled=true"};

TEST(AsymmetricSoftcapElement, BothCapsBeginAsTheOne) {
  const std::vector<ParameterSpec> own = element_parameters(element_model(on));
  ASSERT_EQ(own.size(), 2u);
  EXPECT_EQ(own[0].name, "softcap_pos");
  EXPECT_EQ(own[1].name, "softcap_neg");
  for (const ParameterSpec& spec : own) {
    EXPECT_EQ(spec.type, TensorType(MLG_F32, {1}));
    EXPECT_EQ(initial_values(spec, 7), std::vector<float>{15.0F});
  }
}

// Scores have it in the place of the softcap; training has the softcap, or leaves it to the loss.
TEST(AsymmetricSoftcapElement, ActsOnScoresAlone) {
  const ModelConfig model = element_model(on);
  EXPECT_EQ(count_calls(model, "asymmetric_softcap_fwd", HeadUse::scoring), 1);
  EXPECT_EQ(count_calls(model, "softcap_fwd", HeadUse::scoring), 0);
  EXPECT_EQ(count_calls(model, "asymmetric_softcap_fwd", HeadUse::training), 0);
  EXPECT_EQ(count_calls(model, "softcap_fwd", HeadUse::training), 1);
  EXPECT_EQ(count_calls(model, "softcap_fwd", HeadUse::training_uncapped), 0);
  EXPECT_EQ(count_calls(model, "asymmetric_softcap_fwd", HeadUse::training_uncapped), 0);
}

TEST(AsymmetricSoftcapElement, NeedsACapToBeginWith) {
  EXPECT_NE(element_refusal({on[1]}).find("there is no cap"), std::string::npos);
  EXPECT_EQ(element_refusal(on), "");
}

}  // namespace
}  // namespace mulligan::asymmetric_softcap_test
