// head_gate_xsa against its formula (docs/kernels.md).
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/backend_fixture.h"
#include "tests/kernels/operator_tests.h"
#include "tests/kernels/row_probe.h"

namespace mulligan::kernel_test::head_gate_xsa_test {
namespace {

Case gate_case(std::int64_t tokens, std::int64_t heads, std::int64_t kv_heads, std::int64_t width,
               double gate_scale) {
  const Shape o{tokens, heads, width};
  return {{{"o", o}, {"v", {tokens, kv_heads, width}}, {"gate", {tokens, heads}}},
          {{"y", o}},
          {{"gate_scale", gate_scale}}};
}

Operator head_gate_xsa() {
  Operator op{.forward = "head_gate_xsa_fwd", .backward = "head_gate_xsa_bwd"};
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
            .run(kernel_call(
                "head_gate_xsa_bwd", "o gate dy do dgate", {o, logit, dy, o, logit},
                {{"gate_scale", 1}, {"accumulate_do", 0}, {"accumulate_dv", 0}, {"accumulate_dgate", 0}}))
            .written;
    const double slope = 5 / (1 + std::exp(-gate)) / (1 + std::exp(gate));
    EXPECT_NEAR(got.at("dgate").values[0], slope, 5e-6 * slope) << gate;
  }
}

// A value vector of zeros (a padded position) leaves o as it is and gives finite gradients.
TEST(HeadGateXsa, ZeroValueVectorIsHarmless) {
  const Array o{MLG_F32, {1, 2, 3}, {1, 2, 3, 4, 5, 6}}, v{MLG_F32, {1, 1, 3}, {0, 0, 0}};
  BackendFixture& backend = backend_with_threads(1);
  const auto forward = backend.run(
      kernel_call("head_gate_xsa_fwd", "o v y", {o, v, {MLG_F32, {1, 2, 3}, {}}}, {{"gate_scale", 1}}));
  EXPECT_EQ(forward.written.at("y").values, o.values);
  const auto backward = backend.run(
      kernel_call("head_gate_xsa_bwd", "o v dy do dv",
                  {o,
                   v,
                   o,
                   {MLG_F32, {1, 2, 3}, std::vector<double>(6, 0.0)},
                   {MLG_F32, {1, 1, 3}, std::vector<double>(3, 0.0)}},
                  {{"gate_scale", 1}, {"accumulate_do", 0}, {"accumulate_dv", 0}, {"accumulate_dgate", 0}}));
  EXPECT_EQ(backward.written.at("do").values, o.values);
  for (const double value : backward.written.at("dv").values) EXPECT_EQ(value, 0.0);
}

const RegisterOperator registered{head_gate_xsa()};

const RegisterRows registered_rows{
    {"head_gate_xsa_fwd", "o:THh v:TKh gate:TH y:THh", "gate_scale=1.5"},
    {"head_gate_xsa_bwd", "o:THh v:TKh gate:TH dy:THh do:THh dv:TKh dgate:TH", "gate_scale=1.5"}};

}  // namespace
}  // namespace mulligan::kernel_test::head_gate_xsa_test
