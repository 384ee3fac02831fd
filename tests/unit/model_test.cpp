// Parameters, layer orders, initial values and random numbers of the model.
#include <gtest/gtest.h>

#include <cmath>

#include "framework/core/philox.h"
#include "framework/model/initialise.h"
#include "framework/model/layer_order.h"
#include "framework/model/parameters.h"
#include "framework/model/rope.h"

namespace mulligan::model_test {
namespace {

using Order = std::vector<std::int64_t>;

// The record's hyper-parameters (docs/record_run.md#model).
ModelConfig record_model() {
  ModelConfig model;
  model.vocabulary = 8192;
  model.layers = 11;
  model.width = 512;
  model.heads = 8;
  model.kv_heads = 4;
  model.rope.dims = 16;
  model.loop = {3, 5, 2, 0.35};
  model.lanes.parallel_start = 8;
  resolve_model_defaults(model);
  return model;
}

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

TEST(Initialise, OrthogonalMatricesOfEveryOrientation) {
  for (const auto& [rows, columns] : {std::pair{6, 6}, {3, 8}, {9, 4}}) {
    ParameterSpec spec;
    spec.name = "w";
    spec.type = TensorType(MLG_F32, {2, rows, columns});
    spec.initial = {{0, 1, Initial::orthogonal, 0}, {1, 2, Initial::zeros, 0}};
    const std::vector<float> values = initial_values(spec, 11);
    const int shorter = std::min(rows, columns);
    for (int i = 0; i < shorter; ++i) {
      for (int j = 0; j < shorter; ++j) {
        double dot = 0;
        for (int k = 0; k < std::max(rows, columns); ++k) {
          const auto at = [&](int short_index) {
            const int index = rows <= columns ? short_index * columns + k : k * columns + short_index;
            return static_cast<double>(values[static_cast<std::size_t>(index)]);
          };
          dot += at(i) * at(j);
        }
        EXPECT_NEAR(dot, i == j ? 1.0 : 0.0, 1e-6);
      }
    }
    EXPECT_EQ(values.back(), 0.0F);  // the second entry of the bank starts at zero
  }
}

TEST(Initialise, IsAFunctionOfSeedAndNameOnly) {
  ParameterSpec spec{"w", TensorType(MLG_F32, {5, 7}), {{0, 5, Initial::normal, 0.5}}, true};
  const std::vector<float> first = initial_values(spec, 1);
  EXPECT_EQ(initial_values(spec, 1), first);
  EXPECT_NE(initial_values(spec, 2), first);
  spec.name = "other";
  EXPECT_NE(initial_values(spec, 1), first);
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

}  // namespace
}  // namespace mulligan::model_test
