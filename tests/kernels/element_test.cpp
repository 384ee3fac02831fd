// leaky_relu_squared, softcap, axpby, cast, scale_by, lerp_into: element-wise kernels against their formulas.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/kernels/backend_fixture.h"
#include "tests/kernels/operator_tests.h"

namespace mulligan::kernel_test {
namespace {

// Rank 1 to 4; the largest spans several blocks of work. {24, 104} and kMatrices[1] are a whole number of
// 16-byte accesses of any dtype, the others are not.
const Shape kShapes[] = {{1}, {17, 3}, {2, 5, 3, 7}, {24, 104}, {5003, 5}};
const Shape kMatrices[] = {{67, 129}, {68, 136}};

Operator leaky_relu_squared() {
  Operator op{.forward = "leaky_relu_squared_fwd", .backward = "leaky_relu_squared_bwd", .cases = {}};
  // The derivative has a corner at 0, where finite differences say nothing.
  const Generator away_from_zero = [](Random& random, std::int64_t) {
    const double value = std::normal_distribution<double>()(random);
    return value + (value > 0 ? 0.01 : -0.01);
  };
  for (const Shape& shape : kShapes) {
    op.cases.push_back({{{"u", shape, std::nullopt, away_from_zero}}, {{"y", shape}}, {{"slope", 0.5}}});
  }
  op.cases.push_back({{{"u", {9}, std::nullopt, away_from_zero}}, {{"y", {9}}}, {{"slope", 0.0}}});
  return op.computes([](auto& call) {
    auto& u = call.in("u");
    for (std::int64_t i = 0; i < u.size(); ++i) {
      const auto bent = value_of(u[i]) > 0 ? u[i] : u[i] * call.attribute("slope");
      call.out("y")[i] = bent * bent;
    }
  });
}

Operator softcap() {
  Operator op{.forward = "softcap_fwd", .backward = "softcap_bwd", .cases = {}};
  for (const Shape& shape : kShapes) {
    op.cases.push_back({{{"z", shape, std::nullopt, normal(0, 30)}}, {{"y", shape}}, {{"cap", 30.0}}});
  }
  op.cases.push_back({{{"z", {200}, std::nullopt, normal(0, 1e-3)}}, {{"y", {200}}}, {{"cap", 15.0}}});
  return op.computes([](auto& call) {
    using std::tanh;
    auto& z = call.in("z");
    for (std::int64_t i = 0; i < z.size(); ++i) {
      call.out("y")[i] = call.attribute("cap") * tanh(z[i] / call.attribute("cap"));
    }
  });
}

// Every dtype of every tensor that may stand beside the others', adding to y and overwriting it (then y starts as NaN).
Operator axpby() {
  Operator op{.forward = "axpby", .cases = {}, .dtypes = {MLG_F32}};
  op.tolerance_f32 = 4e-3;  // y may be bf16: half a unit of 8 bits
  for (const mlg_dtype narrow : {MLG_BF16, MLG_F16}) {
    for (const unsigned bits : {0u, 1u, 2u, 3u, 4u, 5u, 6u, 7u}) {
      if (bits == 0 && narrow == MLG_F16) continue;  // all f32: once is enough
      const auto dtype = [&](unsigned bit) { return (bits & bit) != 0 ? narrow : MLG_F32; };
      const mlg_dtype a = dtype(1), b = dtype(2), y = dtype(4);
      for (const double accumulate : {0.0, 1.0}) {
        const Generator before = accumulate != 0 ? normal() : normal(std::nan(""));
        for (const Shape& shape : kMatrices) {
          op.cases.push_back({{{"a", shape, a}, {"b", shape, b}, {"y", shape, y, before}},
                              {{"y", shape, y}},
                              {{"alpha", 0.75}, {"beta", -1.5}, {"accumulate_y", accumulate}}});
        }
      }
    }
  }
  return op.computes([](auto& call) {
    for (std::int64_t i = 0; i < call.in("a").size(); ++i) {
      auto& y = call.out("y")[i];
      if (call.attribute("accumulate_y") != 0) y = call.in("y")[i];
      y += call.in("a")[i] * call.attribute("alpha");
      if (call.has("b")) y += call.in("b")[i] * call.attribute("beta");
    }
  });
}

Operator scale_by() {
  Operator op{.forward = "scale_by", .cases = {}, .free_extents = {"x"}, .dtypes = {MLG_F32}};
  for (const double scale : {0.3, 1.0}) {
    for (const Shape& shape : kMatrices) {
      op.cases.push_back({{{"x", shape}, {"scale", {1}, MLG_F32, values({scale})}}, {{"x", shape}}, {}});
    }
  }
  return op.computes([](auto& call) {
    for (std::int64_t i = 0; i < call.in("x").size(); ++i)
      call.out("x")[i] = call.in("x")[i] * call.in("scale")[0];
  });
}

Operator lerp_into() {
  Operator op{.forward = "lerp_into", .cases = {}};
  op.tolerance_bf16 = 2e-5;  // only x is bf16, and its values are exact
  for (const Shape& shape : kShapes) {
    op.cases.push_back(
        {{{"average", shape, MLG_F32}, {"x", shape}}, {{"average", shape, MLG_F32}}, {{"decay", 0.9965}}});
  }
  return op.computes([](auto& call) {
    const double decay = call.attribute("decay");
    for (std::int64_t i = 0; i < call.in("x").size(); ++i) {
      call.out("average")[i] = call.in("average")[i] * decay + call.in("x")[i] * (1 - decay);
    }
  });
}

const RegisterOperator tests[] = {RegisterOperator(leaky_relu_squared()), RegisterOperator(softcap()),
                                  RegisterOperator(axpby()), RegisterOperator(scale_by()),
                                  RegisterOperator(lerp_into())};

const CoversKernel covers_cast("cast");

// Numbers at and beside every kind of rounding boundary of f32, bf16 and f16, and the special ones.
std::vector<double> awkward_numbers() {
  std::vector<double> numbers{0.0,     -0.0,    INFINITY, -INFINITY, std::nan(""),
                              65504.0, 65519.0, 65520.0,  3.4e38,    1e39};
  Random random(5);
  for (int i = 0; i < 3000; ++i) {
    const double base = std::ldexp(1.0 + std::uniform_int_distribution<int>(0, 2047)(random) / 2048.0,
                                   std::uniform_int_distribution<int>(-30, 20)(random));
    const double below = std::nextafter(base, 0.0), above = std::nextafter(base, HUGE_VAL);
    const double slightly_above = base * (1 + std::ldexp(1.0, -30)),
                 slightly_below = base * (1 - std::ldexp(1.0, -30));
    for (const double x : {base, below, above, slightly_above, slightly_below}) {
      numbers.push_back(i % 2 == 0 ? x : -x);
    }
  }
  return numbers;
}

// Every pair of dtypes gives exactly the value rounded once to nearest even, on any number of threads.
void check_casts(const std::vector<double>& numbers) {
  const mlg_dtype dtypes[] = {MLG_F32, MLG_BF16, MLG_F16, MLG_F64};
  for (const mlg_dtype from : dtypes) {
    for (const mlg_dtype to : dtypes) {
      Array x{from, {static_cast<std::int64_t>(numbers.size())}, {}};
      for (const double number : numbers) x.values.push_back(round_to(from, number));
      for (const int threads : {1, 3}) {
        const auto result =
            backend_with_threads(threads).run({.kernel = "cast",
                                               .arguments = {{"x", x}, {"y", {to, x.shape, {}}}},
                                               .attributes = {},
                                               .aliases = {}});
        const std::vector<double>& y = result.written.at("y").values;
        for (std::size_t i = 0; i < numbers.size(); ++i) {
          const double expected = round_to(to, x.values[i]);
          ASSERT_TRUE(y[i] == expected || (std::isnan(y[i]) && std::isnan(expected)))
              << dtype_name(from) << " " << x.values[i] << " became " << dtype_name(to) << " " << y[i]
              << " and not " << expected;
          ASSERT_TRUE(std::isnan(expected) || std::signbit(y[i]) == std::signbit(expected)) << x.values[i];
        }
      }
    }
  }
}

TEST(Cast, RoundsOnceToNearestEven) {
  std::vector<double> numbers = awkward_numbers();
  check_casts(numbers);
  numbers.resize(numbers.size() / 8 * 8);  // a whole number of 16-byte accesses
  check_casts(numbers);
}

TEST(Cast, RefusesIntegersAndOtherShapes) {
  KernelCall call{.kernel = "cast",
                  .arguments = {{"x", {MLG_I32, {4}, {}}}, {"y", {MLG_F32, {4}, {}}}},
                  .attributes = {},
                  .aliases = {}};
  EXPECT_NE(backend_with_threads(1).refusal(call).find("argument x"), std::string::npos);
  call.arguments["x"] = {MLG_F32, {5}, {}};
  EXPECT_NE(backend_with_threads(1).refusal(call).find("argument y"), std::string::npos);
}

}  // namespace
}  // namespace mulligan::kernel_test
