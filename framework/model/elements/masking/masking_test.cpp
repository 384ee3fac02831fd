// [model.masking]: attention to both sides where it is on, and what such a model is refused for.
#include <gtest/gtest.h>

#include "framework/model/elements/masking/config.h"
#include "tests/support/element_testing.h"

namespace mulligan::masking_test {
namespace {

TEST(MaskingElement, OffUnlessAskedFor) {
  const ModelConfig off = element_model({"model.masking.mask_share=0.5", "model.masking.token=3"});
  EXPECT_FALSE(predicts_masked(off));
  EXPECT_EQ(count_calls(off, "attention_fwd"), 2);
  EXPECT_EQ(count_calls(off, "attention_bidirectional_fwd"), 0);
}

TEST(MaskingElement, AttentionToBothSides) {
  const ModelConfig on = element_model({"model.masking.share=0.15"});
  EXPECT_TRUE(predicts_masked(on));
  EXPECT_EQ(count_calls(on, "attention_bidirectional_fwd"), 2);
  EXPECT_EQ(count_calls(on, "attention_bidirectional_bwd"), 2);
  EXPECT_EQ(count_calls(on, "attention_fwd"), 0);
  EXPECT_EQ(count_calls(on, "attention_bwd"), 0);
  EXPECT_TRUE(element_parameters(on).empty());
  EXPECT_NE(element_refusal({"model.masking.share=0.15", "model.family=qwen2"}).find("model.masking.share"),
            std::string::npos);
}

TEST(MaskingElement, WhatScoresTheNextTokenIsRefused) {
  const auto refusal = [](std::vector<std::string> sets) {
    EXPECT_EQ(element_refusal(sets), "") << sets.front();
    sets.emplace_back("model.masking.share=0.15");
    return element_refusal(sets);
  };
  const auto says = [](const std::string& sentence, const char* part) {
    EXPECT_NE(sentence.find(part), std::string::npos) << sentence;
    EXPECT_NE(sentence.find("model.masking"), std::string::npos) << sentence;
  };
  says(refusal({"eval.mode=sliding"}), "sliding");
  says(refusal({"ledger.rules=strict"}), "strict");
  says(refusal({"metrics.attention_every=10"}), "attention_every");
  says(refusal({"model.attention.stabilize=repeat_max"}), "[model.attention]");
}

TEST(MaskingElement, ValuesThatMakeNoSenseAreRefused) {
  for (const char* set : {"model.masking.share=-0.1", "model.masking.share=1.5", "model.masking.token=64",
                          "model.masking.random_share=0.3", "model.masking.seed=-1"}) {
    EXPECT_NE(element_refusal({"model.masking.share=0.15", set}).find("model.masking."), std::string::npos)
        << set;
  }
  const ModelConfig model = element_model({"model.masking.share=0.15", "model.masking.token=1"});
  EXPECT_THROW(check_tokenizer(model, 1), Error);
  EXPECT_NO_THROW(check_tokenizer(model, 2));
  EXPECT_THROW(require_next_token(model, "this needs it"), Error);
  EXPECT_NO_THROW(require_next_token(element_model(), "this needs it"));
}

}  // namespace
}  // namespace mulligan::masking_test
