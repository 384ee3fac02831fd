// The rational softcap as an element; its numbers: kernels/rational_softcap, tests/golden/arena_model_golden_test.cpp.
#include <gtest/gtest.h>

#include "tests/support/element_testing.h"

namespace mulligan::rational_softcap_element_test {
namespace {

TEST(RationalSoftcapElement, CapsWhateverTheLogitsAreFor) {
  const ModelConfig capped = element_model({"model.rational_softcap.cap=15"}), open = element_model();
  for (const HeadUse use : {HeadUse::scoring, HeadUse::training, HeadUse::training_uncapped}) {
    EXPECT_EQ(count_calls(capped, "rational_softcap_fwd", use), 1);
    EXPECT_EQ(count_calls(capped, "rational_softcap_bwd", use), 1);
    EXPECT_EQ(count_calls(open, "rational_softcap_fwd", use), 0);
  }
  EXPECT_TRUE(element_parameters(capped).empty());
}

TEST(RationalSoftcapElement, CapsOnce) {
  EXPECT_NE(element_refusal({"model.softcap=30", "model.rational_softcap.cap=15"}).find("capped once"),
            std::string::npos);
  EXPECT_EQ(element_refusal({"model.rational_softcap.cap=15"}), "");
}

}  // namespace
}  // namespace mulligan::rational_softcap_element_test
