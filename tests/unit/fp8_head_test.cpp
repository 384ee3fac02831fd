// The head in FP8 (train.fp8_head): what it multiplies, what its gradients multiply, and where it is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "framework/graph/program.h"
#include "framework/graph/tape.h"
#include "kernels/matmul/op.h"
#include "kernels/round_fp8/op.h"
#include "tests/support/plugins.h"
#include "tests/unit/config_testing.h"

namespace mulligan::fp8_head_test {
namespace {

constexpr std::int64_t kRows = 5, kInputs = 24, kOutputs = 17;
constexpr ops::Fp8Scales kScales{.input = 0x1p-4, .weight = 0x1p-8, .gradient = 0x1p-12};

using Numbers = std::vector<float>;

Numbers random_numbers(std::size_t count, std::uint32_t seed, float deviation) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0, deviation);
  Numbers numbers(count);
  for (float& number : numbers) number = normal(generator);
  return numbers;
}

// In double and by rounding the fraction, so not as the kernels do it.
Numbers rounded(Numbers numbers, int bits, int least_exponent, double scale) {
  for (float& number : numbers) {
    int exponent = 0;
    std::frexp(static_cast<double>(number) / scale, &exponent);
    const double step = std::ldexp(scale, std::max(exponent - 1, least_exponent) - bits);
    number = static_cast<float>(step * std::nearbyint(static_cast<double>(number) / step));
  }
  return numbers;
}

struct Matmuls {
  Numbers y, dx, dw;
};

// Of a head in the compute dtype or in FP8, with the gradient dy of its result.
Matmuls matmuls(bool fp8, const Numbers& x, const Numbers& weight, const Numbers& dy) {
  const auto backend = make_cpu_backend(1);
  TensorStore store(*backend);
  Graph graph;
  Tape tape(graph, true);
  const auto external = [&](const char* name, std::int64_t rows, std::int64_t columns) {
    return graph.external(name, TensorType(MLG_F32, {rows, columns}));
  };
  const Value in = external("x", kRows, kInputs), table = external("weight", kOutputs, kInputs);
  tape.watch(in, external("dx", kRows, kInputs));
  tape.watch(table, external("dw", kOutputs, kInputs));
  const TensorType result(MLG_F32, {kRows, kOutputs});
  const Value y =
      fp8 ? ops::fp8_linear(tape, in, table, result, kScales) : ops::linear(tape, in, table, result);
  graph.call("cast", {y, external("y", kRows, kOutputs)});
  tape.backward(y, external("dy", kRows, kOutputs));
  store.create_externals(graph);
  Program program(*backend, std::move(graph), "head");
  SharedArena arena(*backend);
  arena.bind({&program}, store);
  store.upload("x", x);
  store.upload("weight", weight);
  store.upload("dy", dy);
  store.zero("dx");
  store.zero("dw");
  program.run();
  return {store.download_as<float>("y"), store.download_as<float>("dx"), store.download_as<float>("dw")};
}

void expect_close(const Numbers& seen, const Numbers& expected, const char* what) {
  float largest = 0;
  for (const float number : expected) largest = std::max(largest, std::abs(number));
  ASSERT_EQ(seen.size(), expected.size());
  for (std::size_t i = 0; i < seen.size(); ++i)
    EXPECT_NEAR(seen[i], expected[i], 1e-6 * largest) << what << i;
}

TEST(Fp8Head, MultipliesRoundedOperandsAndARoundedGradient) {
  const Numbers x = random_numbers(kRows * kInputs, 1, 1.0f),
                weight = random_numbers(kOutputs * kInputs, 2, 0.05f),
                dy = random_numbers(kRows * kOutputs, 3, 0.01f);
  const Matmuls seen = matmuls(true, x, weight, dy);
  const Matmuls expected =
      matmuls(false, rounded(x, 3, -6, kScales.input), rounded(weight, 3, -6, kScales.weight),
              rounded(dy, 2, -14, kScales.gradient));
  expect_close(seen.y, expected.y, "y ");
  expect_close(seen.dx, expected.dx, "dx ");
  expect_close(seen.dw, expected.dw, "dw ");
  // Numbers that FP8 has need no rounding; others give another result.
  EXPECT_NE(seen.y, matmuls(false, x, weight, dy).y);
}

TEST(Fp8Head, IsRefusedWhereItsScaleWouldNotHold) {
  const auto refusal = [](std::vector<std::string> sets) {
    sets.push_back("train.fp8_head=true");
    return error_of([&] { small_config(sets, ""); });
  };
  for (const auto& [set, reason] : {std::pair{"train.compute_dtype=fp16", "the loss scale of fp16"},
                                    {"loss_scale.mode=dynamic", "loss_scale.mode"},
                                    {"loss_scale.mode=static", "loss_scale.mode"}}) {
    EXPECT_TRUE(contains(refusal({set}), "train.fp8_head", reason));
  }
  const std::string modded = refusal({"model.family=modded", "model.rational_softcap.cap=15"});
  EXPECT_TRUE(contains(modded, "train.fp8_head", "\"modded\" adds a bias"));
  EXPECT_TRUE(small_config({"train.fp8_head=true", "train.compute_dtype=bf16"}, "").config.train.fp8_head);
}

}  // namespace
}  // namespace mulligan::fp8_head_test
