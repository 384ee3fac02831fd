// The stages of the forward pass as a whole: which elements act, in which order, what they exclude.
#include <gtest/gtest.h>

#include <set>

#include "framework/config/model_elements.h"
#include "tests/support/element_testing.h"

namespace mulligan::model_stages_test {
namespace {

std::vector<std::string> at(const ModelConfig& model, const std::string& stage) {
  for (const StageList& list : model_stages(model)) {
    if (list.stage == stage) return list.elements;
  }
  ADD_FAILURE() << "no stage " << stage;
  return {};
}

TEST(ModelStages, AreListedFromTheConfiguration) {
  for (const StageList& list : model_stages(element_model()))
    EXPECT_TRUE(list.elements.empty()) << list.stage;
  const ModelConfig all =
      element_model({"model.softcap=30", "model.asymmetric_softcap.enabled=true", "model.smear_gate.window=4",
                     "model.xsa_last_layers=-1", "model.attention_gate=true"});
  EXPECT_EQ(at(all, "embedding"), (std::vector<std::string>{"smear_gate"}));
  EXPECT_EQ(at(all, "attention output"), (std::vector<std::string>{"xsa", "dense_gate"}));
  EXPECT_EQ(at(all, "head"), (std::vector<std::string>{"softcap", "asymmetric_softcap"}));
}

// The part that the configuration knows and the part that the model knows are of the same elements.
TEST(ModelStages, EveryElementIsDeclaredOnce) {
  std::set<std::string> names;
  ASSERT_EQ(model_elements().size(), declared_elements().size());
  for (std::size_t i = 0; i < declared_elements().size(); ++i) {
    EXPECT_EQ(model_elements()[i].name, declared_elements()[i].name);
    EXPECT_TRUE(names.insert(declared_elements()[i].name).second) << declared_elements()[i].name;
    EXPECT_NE(declared_elements()[i].keys, nullptr);
    EXPECT_NE(model_elements()[i].active, nullptr);
    EXPECT_FALSE(model_elements()[i].active(element_model())) << declared_elements()[i].name;
  }
}

// XSA after a gate would be another function: what cannot join a call gets one of its own.
TEST(ModelStages, StepsThatDoNotJoinAreSeparateCalls) {
  const auto calls = [](auto&& steps) {
    Graph graph;
    Tape tape(graph, false);
    const TensorType heads(MLG_F32, {3, 2, 4});
    AttentionOutput output(tape, 0, graph.external("o", heads), graph.external("v", heads),
                           graph.external("n", TensorType(MLG_F32, {3, 8})),
                           graph.external("gate", TensorType(MLG_F32, {3, 2})));
    steps(output);
    output.value();
    return graph.calls().size();
  };
  EXPECT_EQ(calls([](AttentionOutput&) {}), 0u);
  EXPECT_EQ(calls([](AttentionOutput& o) { o.remove_value(), o.apply_gate(1); }), 1u);
  EXPECT_EQ(calls([](AttentionOutput& o) { o.apply_gate(1), o.remove_value(); }), 2u);
  EXPECT_EQ(calls([](AttentionOutput& o) { o.apply_gate(1), o.apply_gate(0.5); }), 2u);
}

}  // namespace
}  // namespace mulligan::model_stages_test
