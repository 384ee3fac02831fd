// Matmuls with the MLP's activation against their formulas, finite differences, and the bits of the plain calls.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/backend_fixture.h"
#include "tests/kernels/operator_tests.h"
#include "tests/kernels/row_probe.h"

namespace mulligan::kernel_test::linear_leaky_relu_squared_test {
namespace {

struct Extents {
  std::int64_t tokens, width, features;
};
// Odd ones, several tiles with shorter last ones, an inner dimension that is cut in pieces, whole 16-byte accesses.
const Extents kExtents[] = {{5, 3, 7}, {1, 1, 1}, {65, 129, 33}, {300, 17, 530}, {17, 2100, 9}, {24, 16, 64}};

Operator forward() {
  Operator op{.forward = "linear_leaky_relu_squared_fwd"};
  for (const auto& [tokens, width, features] : kExtents) {
    op.cases.push_back({{{"x", {tokens, width}}, {"w", {features, width}}},
                        {{"u", {tokens, features}}, {"y", {tokens, features}}},
                        {{"slope", 0.5}}});
  }
  op.cases.push_back({{{"x", {9, 4}}, {"w", {6, 4}}}, {{"u", {9, 6}}, {"y", {9, 6}}}, {{"slope", 0.0}}});
  return op.computes([](auto& call) {
    using S = typename std::remove_reference_t<decltype(call)>::Scalar;
    auto &x = call.in("x"), &w = call.in("w");
    for (std::int64_t t = 0; t < x.dim(0); ++t) {
      for (std::int64_t f = 0; f < w.dim(0); ++f) {
        S u = 0.0;
        for (std::int64_t j = 0; j < x.dim(1); ++j) u += x(t, j) * w(f, j);
        const S bent = value_of(u) > 0 ? u : u * call.attribute("slope");
        call.out("u")(t, f) = u;
        call.out("y")(t, f) = bent * bent;
      }
    }
  });
}

Operator backward() {
  Operator op{.forward = "linear_leaky_relu_squared_bwd"};
  for (const auto& [tokens, width, features] : kExtents) {
    op.cases.push_back({{{"dy", {tokens, width}}, {"w", {width, features}}, {"u", {tokens, features}}},
                        {{"du", {tokens, features}}},
                        {{"slope", 0.5}}});
  }
  return op.computes([](auto& call) {
    using S = typename std::remove_reference_t<decltype(call)>::Scalar;
    auto &dy = call.in("dy"), &w = call.in("w"), &u = call.in("u");
    const double slope = call.attribute("slope");
    for (std::int64_t t = 0; t < u.dim(0); ++t) {
      for (std::int64_t f = 0; f < u.dim(1); ++f) {
        S sum = 0.0;
        for (std::int64_t j = 0; j < w.dim(0); ++j) sum += dy(t, j) * w(j, f);
        call.out("du")(t, f) = sum * u(t, f) * (value_of(u(t, f)) > 0 ? 2.0 : 2.0 * slope * slope);
      }
    }
  });
}

const RegisterOperator registered{forward(), backward()};

// du is the derivative, with respect to u, of sum(dout * (f(u) W^T)): the loss that the next matmul passes on.
TEST(LinearLeakyReluSquared, TheGradientIsThatOfTheNextMatmulsInput) {
  constexpr std::int64_t kTokens = 4, kWidth = 6, kFeatures = 5;
  Random random(3);
  const Array dout = draw(MLG_F32, {kTokens, kWidth}, random), w = draw(MLG_F32, {kWidth, kFeatures}, random);
  const Array u = draw(MLG_F32, {kTokens, kFeatures}, random);
  const auto loss = [&](const std::vector<double>& at) {
    double sum = 0;
    for (std::int64_t t = 0; t < kTokens; ++t) {
      for (std::int64_t o = 0; o < kWidth; ++o) {
        for (std::int64_t f = 0; f < kFeatures; ++f) {
          const double value = at[t * kFeatures + f], bent = value > 0 ? value : 0.5 * value;
          sum += dout.values[t * kWidth + o] * bent * bent * w.values[o * kFeatures + f];
        }
      }
    }
    return sum;
  };
  const auto result = backend_with_threads(2).run(kernel_call(
      "linear_leaky_relu_squared_bwd", "dy w u du", {dout, w, u, {MLG_F32, u.shape, {}}}, {{"slope", 0.5}}));
  const std::vector<double>& du = result.written.at("du").values;
  for (std::size_t i = 0; i < u.values.size(); ++i) {
    std::vector<double> above = u.values, below = u.values;
    const double step = 1e-6;
    above[i] += step;
    below[i] -= step;
    EXPECT_NEAR(du[i], (loss(above) - loss(below)) / (2 * step), 1e-4 * (1 + std::abs(du[i]))) << i;
  }
}

// Without compiled code in the kernels' place: the bits of matmul and leaky_relu_squared.
TEST(LinearLeakyReluSquared, HasTheBitsOfThePlainCalls) {
  Random random(5);
  for (const mlg_dtype dtype : {MLG_F32, MLG_BF16}) {
    const Array x = draw(dtype, {67, 40}, random), w = draw(dtype, {72, 40}, random);
    const Array none{dtype, {67, 72}, std::vector<double>(67 * 72)};
    const Array down = draw(dtype, {40, 72}, random);
    const auto run = [](const KernelCall& call) { return backend_with_threads(2).run(call).written; };
    const auto matmul = [&](const Array& a, const Array& b, double transpose_b) {
      const KernelCall call =
          kernel_call("matmul", "a b c", {a, b, none},
                      {{"transpose_a", 0}, {"transpose_b", transpose_b}, {"alpha", 1}, {"beta", 0}});
      return Array{dtype, none.shape, run(call).at("c").values};
    };
    const Array u = matmul(x, w, 1), dy = matmul(x, down, 0);
    KernelCall call =
        kernel_call("linear_leaky_relu_squared_fwd", "x w u y", {x, w, none, none}, {{"slope", 0.5}});
    const auto forward = run(call);
    EXPECT_EQ(forward.at("u").values, u.values);
    EXPECT_EQ(forward.at("y").values,
              run(kernel_call("leaky_relu_squared_fwd", "u y", {u, none}, {{"slope", 0.5}})).at("y").values);
    call.arguments.erase("u");  // as a scored pass wants it
    EXPECT_EQ(run(call).at("y").values, forward.at("y").values);
    EXPECT_EQ(
        run(kernel_call("linear_leaky_relu_squared_bwd", "dy w u du", {x, down, u, none}, {{"slope", 0.5}}))
            .at("du")
            .values,
        run(kernel_call("leaky_relu_squared_bwd", "u dy du", {u, dy, none},
                        {{"slope", 0.5}, {"accumulate_du", 0}}))
            .at("du")
            .values);
  }
}

const RegisterRows registered_rows{{"linear_leaky_relu_squared_fwd", "x:Tk w:nk u:Tn y:Tn", "slope=0.5"},
                                   {"linear_leaky_relu_squared_bwd", "dy:Tk w:kn u:Tn du:Tn", "slope=0.5"}};

}  // namespace
}  // namespace mulligan::kernel_test::linear_leaky_relu_squared_test
