// rms_norm against its formula (docs/kernels.md).
#include "tests/kernels/norm_row.h"
#include "tests/kernels/operator_tests.h"
#include "tests/kernels/row_probe.h"

namespace mulligan::kernel_test::rms_norm_test {
namespace {

Case rms_case(std::int64_t rows, std::int64_t width, double scale, double eps = kEps) {
  return {{{"x", {rows, width}}}, {{"y", {rows, width}}}, {{"scale", scale}, {"eps", eps}}};
}

// The widest rows are taken in several slices by the cuda backend, one or several elements at a time.
Operator rms_norm() {
  Operator op{.forward = "rms_norm_fwd", .backward = "rms_norm_bwd"};
  op.cases = {rms_case(3, 7, 1.0),      rms_case(5, 64, 0.5),   rms_case(33, 129, 1.0, 0.01),
              rms_case(301, 512, 0.25), rms_case(3, 4099, 0.5), rms_case(2, 16392, 1.0)};
  return op.computes([](auto& call) {
    for (std::int64_t row = 0; row < call.in("x").dim(0); ++row) {
      norm_row(call.in("x"), call.out("y"), row, call.attribute("scale"), call.attribute("eps"));
    }
  });
}

const RegisterOperator registered{rms_norm()};

const RegisterRows registered_rows{{"rms_norm_fwd", "x:Td y:Td", norm_attributes},
                                   {"rms_norm_bwd", "x:Td dy:Td dx:Td", norm_attributes}};

}  // namespace
}  // namespace mulligan::kernel_test::rms_norm_test
