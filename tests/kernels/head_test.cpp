// qk_norm_rope and head_gate_xsa against their formulas (docs/kernels.md).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/kernels/backend_fixture.h"
#include "tests/kernels/operator_tests.h"

namespace mulligan::kernel_test {
namespace {

constexpr double kEps = 1.1920928955078125e-7;  // 2^-23

Case rope_case(std::int64_t tokens, std::int64_t heads, std::int64_t width, std::int64_t rope_dims,
               std::int64_t row_length, double norm) {
  const Shape x{tokens, heads, width},
      table{row_length + 1, rope_dims / 2};  // tables may be longer than a row
  return {
      {{"x", x}, {"cos", table, MLG_F32}, {"sin", table, MLG_F32}, {"gain", {heads}, MLG_F32, normal(3, 1)}},
      {{"y", x}},
      {{"rope_dims", static_cast<double>(rope_dims)},
       {"row_length", static_cast<double>(row_length)},
       {"norm", norm},
       {"eps", kEps}}};
}

Operator qk_norm_rope() {
  Operator op{.forward = "qk_norm_rope_fwd", .backward = "qk_norm_rope_bwd", .cases = {}};
  op.cases = {rope_case(5, 3, 8, 6, 4, 1),    rope_case(7, 2, 10, 10, 7, 0),
              rope_case(5, 2, 7, 0, 5, 1),    rope_case(66, 3, 64, 16, 33, 1),
              rope_case(9, 2, 80, 80, 16, 1), rope_case(1500, 3, 4, 2, 250, 1)};
  return op.computes([](auto& call) {
    using std::sqrt;
    using S = typename std::decay_t<decltype(call)>::Scalar;
    auto& x = call.in("x");
    const std::int64_t width = x.dim(2), half = static_cast<std::int64_t>(call.attribute("rope_dims")) / 2;
    for (std::int64_t t = 0; t < x.dim(0); ++t) {
      const std::int64_t position = t % static_cast<std::int64_t>(call.attribute("row_length"));
      for (std::int64_t head = 0; head < x.dim(1); ++head) {
        S squares = 0.0;
        for (std::int64_t j = 0; j < width; ++j) squares += x(t, head, j) * x(t, head, j);
        const bool norm = call.attribute("norm") != 0;
        const S root =
            norm ? sqrt(squares / S(static_cast<double>(width)) + S(call.attribute("eps"))) : S(1.0);
        const S gain = call.has("gain") ? call.in("gain")[head] : S(1.0);
        for (std::int64_t j = 0; j < width; ++j) {
          S rotated = x(t, head, j) / root;
          if (j < half) {
            rotated = x(t, head, j) / root * call.in("cos")(position, j) +
                      x(t, head, j + half) / root * call.in("sin")(position, j);
          } else if (j < 2 * half) {
            rotated = x(t, head, j) / root * call.in("cos")(position, j - half) -
                      x(t, head, j - half) / root * call.in("sin")(position, j - half);
          }
          call.out("y")(t, head, j) = gain * rotated;
        }
      }
    }
  });
}

Case gate_case(std::int64_t tokens, std::int64_t heads, std::int64_t kv_heads, std::int64_t width,
               double gate_scale) {
  const Shape o{tokens, heads, width};
  return {{{"o", o}, {"v", {tokens, kv_heads, width}}, {"gate", {tokens, heads}}},
          {{"y", o}},
          {{"gate_scale", gate_scale}}};
}

Operator head_gate_xsa() {
  Operator op{.forward = "head_gate_xsa_fwd", .backward = "head_gate_xsa_bwd", .cases = {}};
  op.cases = {gate_case(5, 4, 2, 7, 1), gate_case(3, 3, 3, 5, 0.5), gate_case(33, 6, 1, 64, 1),
              gate_case(300, 4, 2, 9, -2)};
  return op.computes([](auto& call) {
    using std::exp;
    using std::sqrt;
    using S = typename std::decay_t<decltype(call)>::Scalar;
    auto &o = call.in("o"), &y = call.out("y");
    for (std::int64_t t = 0; t < o.dim(0); ++t) {
      for (std::int64_t head = 0; head < o.dim(1); ++head) {
        for (std::int64_t j = 0; j < o.dim(2); ++j) y(t, head, j) = o(t, head, j);
        if (call.has("v")) {
          auto& v = call.in("v");
          const std::int64_t kv = head / (o.dim(1) / v.dim(1));
          S squares = 0.0, product = 0.0;
          for (std::int64_t j = 0; j < o.dim(2); ++j) {
            squares += v(t, kv, j) * v(t, kv, j);
            product += o(t, head, j) * v(t, kv, j);
          }
          const S length = sqrt(squares);
          const S n = length > S(1e-12) ? length : S(1e-12);
          for (std::int64_t j = 0; j < o.dim(2); ++j)
            y(t, head, j) = o(t, head, j) - product / n * (v(t, kv, j) / n);
        }
        if (!call.has("gate")) continue;
        const S s = 1.0 / (1.0 + exp(-call.attribute("gate_scale") * call.in("gate")(t, head)));
        for (std::int64_t j = 0; j < o.dim(2); ++j) y(t, head, j) = y(t, head, j) * s;
      }
    }
  });
}

// 1 - s of an open gate is sigmoid(-k gate), not what is left of 1: the gate's gradient keeps its digits.
TEST(HeadGateXsa, GradientsOfAnOpenGateKeepTheirDigits) {
  for (const double gate : {-16.0, -4.0, 0.5, 4.0, 10.0, 16.0}) {
    const Array o{MLG_F32, {1, 1, 2}, {1, 2}}, dy{MLG_F32, {1, 1, 2}, {3, 1}}, logit{MLG_F32, {1, 1}, {gate}};
    const auto got =
        backend_with_threads(1)
            .run({.kernel = "head_gate_xsa_bwd",
                  .arguments = {{"o", o}, {"gate", logit}, {"dy", dy}, {"do", o}, {"dgate", logit}},
                  .attributes = {{"gate_scale", 1},
                                 {"accumulate_do", 0},
                                 {"accumulate_dv", 0},
                                 {"accumulate_dgate", 0}},
                  .aliases = {}})
            .written;
    const double slope = 5 / (1 + std::exp(-gate)) / (1 + std::exp(gate));
    EXPECT_NEAR(got.at("dgate").values[0], slope, 5e-6 * slope) << gate;
  }
}

const RegisterOperator tests[] = {RegisterOperator(qk_norm_rope()), RegisterOperator(head_gate_xsa())};

// A value vector of zeros (a padded position) leaves o as it is and gives finite gradients.
TEST(HeadGateXsa, ZeroValueVectorIsHarmless) {
  const Array o{MLG_F32, {1, 2, 3}, {1, 2, 3, 4, 5, 6}}, v{MLG_F32, {1, 1, 3}, {0, 0, 0}};
  BackendFixture& backend = backend_with_threads(1);
  const auto forward = backend.run({.kernel = "head_gate_xsa_fwd",
                                    .arguments = {{"o", o}, {"v", v}, {"y", {MLG_F32, {1, 2, 3}, {}}}},
                                    .attributes = {{"gate_scale", 1}},
                                    .aliases = {}});
  EXPECT_EQ(forward.written.at("y").values, o.values);
  const auto backward = backend.run(
      {.kernel = "head_gate_xsa_bwd",
       .arguments = {{"o", o},
                     {"v", v},
                     {"dy", o},
                     {"do", {MLG_F32, {1, 2, 3}, std::vector<double>(6, 0.0)}},
                     {"dv", {MLG_F32, {1, 1, 3}, std::vector<double>(3, 0.0)}}},
       .attributes = {{"gate_scale", 1}, {"accumulate_do", 0}, {"accumulate_dv", 0}, {"accumulate_dgate", 0}},
       .aliases = {}});
  EXPECT_EQ(backward.written.at("do").values, o.values);
  for (const double value : backward.written.at("dv").values) EXPECT_EQ(value, 0.0);
}

}  // namespace
}  // namespace mulligan::kernel_test
