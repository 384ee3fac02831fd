// smear_gate against its formula (docs/kernels.md).
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/backend_fixture.h"
#include "tests/kernels/operator_tests.h"
#include "tests/kernels/row_probe.h"

namespace mulligan::kernel_test::smear_gate_test {
namespace {

Case smear_case(std::int64_t tokens, std::int64_t width, std::int64_t window, std::int64_t row_length,
                double document_start) {
  return {{{"x", {tokens, width}},
           {"tokens", {tokens}, MLG_I32, uniform_integer(0, 5)},
           {"weight", {1, window}},
           {"lambda", {1}, MLG_F32, normal(0.7, 0.1)}},
          {{"y", {tokens, width}}},
          {{"row_length", static_cast<double>(row_length)}, {"document_start", document_start}}};
}

Operator smear_gate() {
  Operator op{.forward = "smear_gate_fwd", .backward = "smear_gate_bwd"};
  op.cases = {
      smear_case(7, 9, 4, 7, 1),       // one row
      smear_case(12, 5, 5, 4, 1),      // three rows, the whole width is the window
      smear_case(9, 16, 12, 9, -1),    // no mask
      smear_case(1, 8, 3, 1, 1),       // nothing before the only token
      smear_case(6, 8, 1, 1, -1),      // every token begins a row
      smear_case(75, 64, 12, 25, 1),   // several pieces of rows, whole accesses
      smear_case(70, 1030, 12, 70, 2)  // a row of several slices
  };
  op.f32_gradients = {"dweight"};
  op.free_extents = {"weight"};  // any window up to the width
  return op.computes([](auto& call) {
    using std::exp;
    using S = typename std::decay_t<decltype(call)>::Scalar;
    auto &x = call.in("x"), &weight = call.in("weight"), &y = call.out("y");
    const auto row_length = static_cast<std::int64_t>(call.attribute("row_length"));
    for (std::int64_t t = 0; t < x.dim(0); ++t) {
      for (std::int64_t j = 0; j < x.dim(1); ++j) y(t, j) = x(t, j);
      if (t % row_length == 0 ||
          static_cast<double>(call.index("tokens", t)) == call.attribute("document_start"))
        continue;
      S logit = 0.0;
      for (std::int64_t j = 0; j < weight.size(); ++j) logit += weight[j] * x(t, j);
      const S share = call.in("lambda")[0] / (1.0 + exp(-logit));
      for (std::int64_t j = 0; j < x.dim(1); ++j) y(t, j) = x(t, j) + share * x(t - 1, j);
    }
  });
}

const RegisterOperator registered{smear_gate()};

// 1 - s of an open gate is sigmoid(-logit), not what is left of 1.
TEST(SmearGate, GradientsOfAnOpenGateKeepTheirDigits) {
  const Array tokens{MLG_I32, {2}, {1, 7}}, weight{MLG_F32, {1, 2}, {1, 0}}, lambda{MLG_F32, {1}, {1}},
      zeros{MLG_F32, {1, 2}, {0, 0}}, dy{MLG_F32, {2, 2}, {1, 1, 1, 1}};
  for (const double logit : {-16.0, -4.0, 0.5, 4.0, 10.0, 16.0}) {
    const Array x{MLG_F32, {2, 2}, {1, 1, logit, 1}};
    const auto got = backend_with_threads(1)
                         .run(kernel_call("smear_gate_bwd", "x tokens weight lambda dy dweight",
                                          {x, tokens, weight, lambda, dy, zeros},
                                          {{"row_length", 2}, {"document_start", 0}, {"accumulate_dx", 0}}))
                         .written;
    const double slope = 2 / (1 + std::exp(-logit)) / (1 + std::exp(logit));
    EXPECT_NEAR(got.at("dweight").values[0], slope * logit, 5e-6 * std::abs(slope * logit)) << logit;
    EXPECT_NEAR(got.at("dweight").values[1], slope, 5e-6 * slope) << logit;
  }
}

const RegisterRows registered_rows{
    {"smear_gate_fwd", "x:Td tokens:T/i weight:1w lambda:1/f y:Td", "document_start=1"},
    {"smear_gate_bwd", "x:Td tokens:T/i weight:1w lambda:1/f dy:Td dx:Td dweight:1w/f dlambda:1/f",
     "document_start=1"}};

}  // namespace
}  // namespace mulligan::kernel_test::smear_gate_test
