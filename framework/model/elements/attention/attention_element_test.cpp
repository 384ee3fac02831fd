// [model.attention]: plain attention unless a key asks for more, in both families; the same backward pass.
#include <gtest/gtest.h>

#include "framework/model/elements/attention/config.h"
#include "tests/support/element_testing.h"

namespace mulligan::attention_element_test {
namespace {

constexpr const char *plain = "attention_fwd", *stable = "attention_stable_fwd";

TEST(AttentionElement, PlainUnlessAskedForMore) {
  const ModelConfig off = element_model({"model.attention.beta=4", "model.attention.min_repeats=1"});
  EXPECT_EQ(count_calls(off, plain), 2);
  EXPECT_EQ(count_calls(off, stable), 0);
  for (const char* set : {"model.attention.stabilize=repeat_max", "model.attention.normalizer=rounded",
                          "model.attention.output_rounding=sums"}) {
    const ModelConfig on = element_model({set});
    EXPECT_EQ(count_calls(on, plain), 0) << set;
    EXPECT_EQ(count_calls(on, stable), 2) << set;
    EXPECT_EQ(count_calls(on, "attention_bwd"), 2) << set;
    EXPECT_TRUE(element_parameters(on).empty());
  }
}

// The keys arrive at the kernel; without the rule no repeat is one.
TEST(AttentionElement, KeysAreTheKernelsAttributes) {
  const auto attributes = [](std::vector<std::string> sets) {
    Graph graph;
    Tape tape(graph, false);
    const ModelConfig model = element_model(std::move(sets));
    const TensorType heads(MLG_F32, {3, 4, 4});
    const ParameterValues parameters(tape, parameter_layouts(model, MLG_F32), false);
    attend({tape, model, parameters},
           {graph.external("q", heads), graph.external("k", heads), graph.external("v", heads),
            graph.external("cu", TensorType(MLG_I32, {2}))});
    std::map<std::string, double> named;
    for (const Attribute& one : graph.calls().back().attributes) named[std::string(one.name)] = one.value;
    return named;
  };
  const auto on = attributes({"model.attention.stabilize=repeat_max", "model.attention.beta=4",
                              "model.attention.tolerance=0.01", "model.attention.min_repeats=3",
                              "model.attention.cap=10", "model.attention.normalizer=rounded"});
  EXPECT_EQ(on, (std::map<std::string, double>{{"softmax_scale", 0.5},
                                               {"beta", 4},
                                               {"tolerance", 0.01},
                                               {"min_repeats", 3},
                                               {"cap", 10},
                                               {"round_normalizer", 1},
                                               {"round_sums", 0}}));
  const auto off = attributes({"model.attention.output_rounding=sums"});
  EXPECT_EQ(off.at("min_repeats"), 0);
  EXPECT_EQ(off.at("round_sums"), 1);
}

// The other family has none of the record's parts, but attention it has.
TEST(AttentionElement, Qwen2HasIt) {
  const auto with = [&](const std::string& set) {
    std::vector<std::string> sets = {"model.family=qwen2", set};
    return sets;
  };
  EXPECT_EQ(element_refusal(with("model.attention.stabilize=repeat_max")), "");
  const ModelConfig model = element_model(with("model.attention.stabilize=repeat_max"));
  EXPECT_EQ(elements::attention::config_of(model).stabilize, elements::attention::Stabilize::repeat_max);
  EXPECT_EQ(count_calls(model, stable), 2);
  EXPECT_EQ(count_calls(model, plain), 0);
}

TEST(AttentionElement, ValuesOutOfRangeAreRefused) {
  for (const char* set :
       {"model.attention.beta=0.5", "model.attention.cap=0", "model.attention.min_repeats=0",
        "model.attention.tolerance=-1", "model.attention.stabilize=on"}) {
    EXPECT_NE(element_refusal({set}).find("model.attention."), std::string::npos) << set;
  }
}

}  // namespace
}  // namespace mulligan::attention_element_test
