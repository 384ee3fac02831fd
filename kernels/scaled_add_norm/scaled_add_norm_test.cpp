// scaled_add_norm against its formula (docs/kernels.md).
#include "tests/kernels/norm_row.h"
#include "tests/kernels/operator_tests.h"
#include "tests/kernels/row_probe.h"

namespace mulligan::kernel_test::scaled_add_norm_test {
namespace {

Case add_case(std::int64_t tokens, std::int64_t width, double scale) {
  const Shape rows{tokens, width};
  return {{{"x", rows}, {"a", rows}, {"s", {width}, MLG_F32}},
          {{"y", rows}, {"n", rows}},
          {{"scale", scale}, {"eps", kEps}}};
}

Operator scaled_add_norm() {
  Operator op{.forward = "scaled_add_norm_fwd", .backward = "scaled_add_norm_bwd"};
  op.cases = {add_case(3, 5, 1.0),    add_case(7, 37, 0.5),   add_case(67, 129, 1.0), add_case(2500, 7, 0.7),
              add_case(9, 1031, 0.3), add_case(2, 4099, 0.3), add_case(1, 8200, 0.3)};
  return op.computes([](auto& call) {
    using S = typename std::remove_reference_t<decltype(call)>::Scalar;
    auto &x = call.in("x"), &a = call.in("a"), &y = call.out("y");
    for (std::int64_t t = 0; t < x.dim(0); ++t) {
      for (std::int64_t j = 0; j < x.dim(1); ++j)
        y(t, j) = x(t, j) + (call.has("s") ? call.in("s")[j] : S(1.0)) * a(t, j);
      norm_row(y, call.out("n"), t, call.attribute("scale"), call.attribute("eps"));
    }
  });
}

const RegisterOperator registered{scaled_add_norm()};

const RegisterRows registered_rows{
    {"scaled_add_norm_fwd", "x:Td a:Td s:d/f y:Td n:Td", norm_attributes},
    {"scaled_add_norm_bwd", "y:Td a:Td s:d/f dy:Td dn:Td dx:Td da:Td ds:d/f", norm_attributes}};

}  // namespace
}  // namespace mulligan::kernel_test::scaled_add_norm_test
