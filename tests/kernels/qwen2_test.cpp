// weighted_rms_norm, row_bias and silu_gate, the kernels of the family qwen2, against their formulas
// (docs/kernels.md).
#include <cmath>

#include "tests/kernels/operator_tests.h"

namespace mulligan::kernel_test {
namespace {

Case norm_case(std::int64_t tokens, std::int64_t width, double eps) {
  const Shape rows{tokens, width};
  return {{{"x", rows}, {"weight", {width}, MLG_F32, normal(1, 0.5)}}, {{"y", rows}}, {{"eps", eps}}};
}

// The widest rows are taken in several slices by the cuda backend, one or several elements at a time.
Operator weighted_rms_norm() {
  Operator op{.forward = "weighted_rms_norm_fwd", .backward = "weighted_rms_norm_bwd", .cases = {}};
  op.cases = {norm_case(1, 1, 0.5),     norm_case(3, 5, 1e-6),    norm_case(7, 60, 0.1),
              norm_case(67, 129, 1e-6), norm_case(2500, 7, 1e-6), norm_case(9, 1031, 1e-5),
              norm_case(2, 4099, 1e-6), norm_case(1, 16392, 1e-6)};
  return op.computes([](auto& call) {
    auto &x = call.in("x"), &weight = call.in("weight"), &y = call.out("y");
    using Scalar = std::decay_t<decltype(x[0])>;
    using std::sqrt;
    for (std::int64_t t = 0; t < x.dim(0); ++t) {
      Scalar squares = 0.0;
      for (std::int64_t j = 0; j < x.dim(1); ++j) squares += x(t, j) * x(t, j);
      const Scalar root =
          sqrt(squares / Scalar(static_cast<double>(x.dim(1))) + Scalar(call.attribute("eps")));
      for (std::int64_t j = 0; j < x.dim(1); ++j) y(t, j) = weight[j] * x(t, j) / root;
    }
  });
}

Operator row_bias() {
  Operator op{.forward = "row_bias_fwd", .backward = "row_bias_bwd", .cases = {}};
  for (const auto& [tokens, width] :
       {std::pair{1, 1}, {3, 7}, {67, 129}, {2500, 7}, {9, 1031}, {3, 4099}, {1, 16392}}) {
    const Shape rows{tokens, width};
    op.cases.push_back({{{"x", rows}, {"bias", {width}, MLG_F32}}, {{"y", rows}}, {}});
  }
  return op.computes([](auto& call) {
    auto &x = call.in("x"), &y = call.out("y");
    for (std::int64_t t = 0; t < x.dim(0); ++t) {
      for (std::int64_t j = 0; j < x.dim(1); ++j) y(t, j) = x(t, j) + call.in("bias")[j];
    }
  });
}

Operator silu_gate() {
  Operator op{.forward = "silu_gate_fwd", .backward = "silu_gate_bwd", .cases = {}};
  for (const Shape& shape : {Shape{1}, {17, 3}, {2, 5, 3, 7}, {24, 104}, {5003, 5}}) {
    op.cases.push_back({{{"g", shape, std::nullopt, normal(0, 3)}, {"u", shape}}, {{"y", shape}}, {}});
  }
  // Where the sigmoid has left nothing, or all.
  op.cases.push_back(
      {{{"g", {6}, std::nullopt, values({-120, -90, -20, 20, 90, 120})}, {"u", {6}}}, {{"y", {6}}}, {}});
  return op.computes([](auto& call) {
    auto &g = call.in("g"), &u = call.in("u");
    using Scalar = std::decay_t<decltype(g[0])>;
    using std::exp;
    for (std::int64_t i = 0; i < g.size(); ++i) {
      call.out("y")[i] = g[i] / (Scalar(1.0) + exp(-g[i])) * u[i];
    }
  });
}

const RegisterOperator tests[] = {RegisterOperator(weighted_rms_norm()), RegisterOperator(row_bias()),
                                  RegisterOperator(silu_gate())};

}  // namespace
}  // namespace mulligan::kernel_test
