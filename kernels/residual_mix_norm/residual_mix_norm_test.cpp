// residual_mix_norm against its formula (docs/kernels.md).
#include "tests/kernels/norm_row.h"
#include "tests/kernels/operator_tests.h"
#include "tests/kernels/row_probe.h"

namespace mulligan::kernel_test::residual_mix_norm_test {
namespace {

Case mix_case(std::int64_t tokens, std::int64_t width, double scale) {
  const Shape rows{tokens, width};
  return {{{"x", rows}, {"x0", rows}, {"mix", {2, width}, MLG_F32}},
          {{"y", rows}, {"n", rows}},
          {{"scale", scale}, {"eps", kEps}}};
}

Operator residual_mix_norm() {
  Operator op{.forward = "residual_mix_norm_fwd", .backward = "residual_mix_norm_bwd"};
  op.cases = {mix_case(3, 5, 1.0),    mix_case(7, 37, 0.5),   mix_case(67, 129, 1.0), mix_case(2500, 7, 0.7),
              mix_case(9, 1031, 0.3), mix_case(2, 4099, 0.3), mix_case(1, 8200, 0.3)};
  return op.computes([](auto& call) {
    auto &x = call.in("x"), &x0 = call.in("x0"), &mix = call.in("mix"), &y = call.out("y");
    for (std::int64_t t = 0; t < x.dim(0); ++t) {
      for (std::int64_t j = 0; j < x.dim(1); ++j) y(t, j) = mix(0, j) * x(t, j) + mix(1, j) * x0(t, j);
      norm_row(y, call.out("n"), t, call.attribute("scale"), call.attribute("eps"));
    }
  });
}

const RegisterOperator registered{residual_mix_norm()};

const RegisterRows registered_rows{
    {"residual_mix_norm_fwd", "x:Td x0:Td mix:2d/f y:Td n:Td", norm_attributes},
    {"residual_mix_norm_bwd", "x:Td x0:Td mix:2d/f dy:Td dn:Td dx:Td dx0:Td dmix:2d/f", norm_attributes}};

}  // namespace
}  // namespace mulligan::kernel_test::residual_mix_norm_test
