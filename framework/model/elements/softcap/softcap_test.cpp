// The softcap as an element: where it is recorded. Its numbers: kernels/softcap.
#include <gtest/gtest.h>

#include "tests/support/element_testing.h"

namespace mulligan::softcap_test {
namespace {

TEST(SoftcapElement, CapsEveryUseButThatOfALossThatCapsItself) {
  const ModelConfig capped = element_model({"model.softcap=30"}), open = element_model();
  for (const HeadUse use : {HeadUse::scoring, HeadUse::training}) {
    EXPECT_EQ(count_calls(capped, "softcap_fwd", use), 1);
    EXPECT_EQ(count_calls(open, "softcap_fwd", use), 0);
  }
  EXPECT_EQ(count_calls(capped, "softcap_fwd", HeadUse::training_uncapped), 0);
}

}  // namespace
}  // namespace mulligan::softcap_test
