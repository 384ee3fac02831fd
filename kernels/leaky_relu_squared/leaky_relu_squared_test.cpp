// leaky_relu_squared against its formula (docs/kernels.md).
#include "tests/kernels/element_shapes.h"
#include "tests/kernels/operator_tests.h"
#include "tests/kernels/row_probe.h"

namespace mulligan::kernel_test::leaky_relu_squared_test {
namespace {

Operator leaky_relu_squared() {
  Operator op{.forward = "leaky_relu_squared_fwd", .backward = "leaky_relu_squared_bwd"};
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

const RegisterOperator registered{leaky_relu_squared()};

const RegisterRows registered_rows{{"leaky_relu_squared_fwd", "u:TF y:TF", "slope=0.5"},
                                   {"leaky_relu_squared_bwd", "u:TF dy:TF du:TF", "slope=0.5"}};

}  // namespace
}  // namespace mulligan::kernel_test::leaky_relu_squared_test
