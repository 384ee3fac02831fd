// weighted_rms_norm against its formula (docs/kernels.md).
#include "tests/kernels/norm_row.h"
#include "tests/kernels/operator_tests.h"
#include "tests/kernels/row_probe.h"

namespace mulligan::kernel_test::weighted_rms_norm_test {
namespace {

Case norm_case(std::int64_t tokens, std::int64_t width, double eps) {
  const Shape rows{tokens, width};
  return {{{"x", rows}, {"weight", {width}, MLG_F32, normal(1, 0.5)}}, {{"y", rows}}, {{"eps", eps}}};
}

// The widest rows are taken in several slices by the cuda backend, one or several elements at a time.
Operator weighted_rms_norm() {
  Operator op{.forward = "weighted_rms_norm_fwd", .backward = "weighted_rms_norm_bwd"};
  op.cases = {norm_case(1, 1, 0.5),     norm_case(3, 5, 1e-6),    norm_case(7, 60, 0.1),
              norm_case(67, 129, 1e-6), norm_case(2500, 7, 1e-6), norm_case(9, 1031, 1e-5),
              norm_case(2, 4099, 1e-6), norm_case(1, 16392, 1e-6)};
  return op.computes([](auto& call) {
    auto &x = call.in("x"), &weight = call.in("weight"), &y = call.out("y");
    for (std::int64_t t = 0; t < x.dim(0); ++t) {
      const auto root =
          root_mean_square([&](std::int64_t j) { return x(t, j); }, x.dim(1), call.attribute("eps"));
      for (std::int64_t j = 0; j < x.dim(1); ++j) y(t, j) = weight[j] * x(t, j) / root;
    }
  });
}

const RegisterOperator registered{weighted_rms_norm()};

const RegisterRows registered_rows{
    {"weighted_rms_norm_fwd", "x:Td weight:d/f y:Td", norm_attributes},
    {"weighted_rms_norm_bwd", "x:Td weight:d/f dy:Td dx:Td dweight:d/f", norm_attributes}};

}  // namespace
}  // namespace mulligan::kernel_test::weighted_rms_norm_test
