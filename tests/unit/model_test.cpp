// The model: layer orders, draws, first values, rotary tables, and its elements.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "framework/config/model_elements.h"
#include "framework/core/philox.h"
#include "framework/model/parameters.h"
#include "framework/model/rope.h"
#include "tests/support/element_testing.h"
#include "tests/support/small_config.h"

namespace mulligan::model_test {
namespace {

using Order = std::vector<std::int64_t>;

TEST(Model, LayerOrdersOfTheRecord) {
  const LayerOrder looped = layer_order(record_model(), LayerOrderKind::looped);
  EXPECT_EQ(looped.encoder, (Order{0, 1, 2, 3, 4, 5, 3, 4}));
  EXPECT_EQ(looped.decoder, (Order{5, 3, 4, 5, 6, 7, 8, 9, 10}));
  const LayerOrder plain = layer_order(record_model(), LayerOrderKind::plain);
  EXPECT_EQ(plain.encoder, (Order{0, 1, 2, 3, 4}));
  EXPECT_EQ(plain.decoder, (Order{5, 6, 7, 8, 9, 10}));
  EXPECT_EQ(skip_rows(record_model()), 8);
}

// Random123's known-answer vectors for philox4x32-10.
TEST(Philox, MatchesThePublishedKnownAnswers) {
  using Words = std::array<std::uint32_t, 4>;
  EXPECT_EQ(sdk::philox4x32({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(sdk::philox4x32({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(sdk::philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, NormalNumbersHaveTheRightMoments) {
  const PhiloxStream stream(3, "test");
  const int count = 200'000;
  double sum = 0, squares = 0, fourth = 0;
  for (int i = 0; i < count; ++i) {
    const double x = stream.normal(static_cast<std::uint64_t>(i));
    sum += x, squares += x * x, fourth += x * x * x * x;
  }
  EXPECT_NEAR(sum / count, 0, 5 / std::sqrt(count));
  EXPECT_NEAR(squares / count, 1, 0.02);
  EXPECT_NEAR(fourth / count, 3, 0.15);
}

TEST(Rope, PositionZeroIsTheIdentityAndBf16RoundsFrequenciesOnly) {
  RopeConfig rope;
  rope.dims = 8;
  const RopeTables exact = rope_tables(rope, 10);
  for (int pair = 0; pair < 4; ++pair) {
    EXPECT_EQ(exact.cos[static_cast<std::size_t>(pair)], 1.0F);
    EXPECT_EQ(exact.sin[static_cast<std::size_t>(pair)], 0.0F);
  }
  EXPECT_FLOAT_EQ(exact.cos[4 * 3 + 1], std::cos(3.0F * std::pow(1e4F, -0.25F)));
  rope.table = RopeTable::bf16;
  const RopeTables rounded = rope_tables(rope, 10);
  // 0.1 in bf16; its cosine has more digits than bf16 holds, in every compute dtype.
  EXPECT_EQ(rounded.cos[4 * 3 + 1], std::cos(3.0F * 0.10009765625F));
  EXPECT_EQ(rounded.sin[4 * 3 + 1], std::sin(3.0F * 0.10009765625F));
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
}  // namespace mulligan::model_test
