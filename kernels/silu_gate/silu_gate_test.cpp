// silu_gate against its formula (docs/kernels.md).
#include <cmath>

#include "tests/kernels/operator_tests.h"
#include "tests/kernels/row_probe.h"

namespace mulligan::kernel_test::silu_gate_test {
namespace {

Operator silu_gate() {
  Operator op{.forward = "silu_gate_fwd", .backward = "silu_gate_bwd"};
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

const RegisterOperator registered{silu_gate()};

const RegisterRows registered_rows{{"silu_gate_fwd", "g:TF u:TF y:TF"},
                                   {"silu_gate_bwd", "g:TF u:TF dy:TF dg:TF du:TF"}};

}  // namespace
}  // namespace mulligan::kernel_test::silu_gate_test
