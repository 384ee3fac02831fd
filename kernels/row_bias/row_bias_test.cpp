// row_bias against its formula (docs/kernels.md).
#include "tests/kernels/operator_tests.h"
#include "tests/kernels/row_probe.h"

namespace mulligan::kernel_test::row_bias_test {
namespace {

Operator row_bias() {
  Operator op{.forward = "row_bias_fwd", .backward = "row_bias_bwd"};
  for (const auto& [tokens, width] :
       {std::pair{1, 1}, {3, 7}, {67, 129}, {2500, 7}, {9, 1031}, {3, 4099}, {1, 16392}}) {
    const Shape rows{tokens, width};
    op.cases.push_back({{{"x", rows}, {"bias", {width}, MLG_F32}}, {{"y", rows}}, {}});
  }
  return op.computes([](auto& call) {
    auto& y = call.out("y");
    for (std::int64_t t = 0; t < y.dim(0); ++t) {
      for (std::int64_t j = 0; j < y.dim(1); ++j) {
        y(t, j) = call.in("bias")[j];
        if (call.has("x")) y(t, j) += call.in("x")(t, j);
      }
    }
  });
}

const RegisterOperator registered{row_bias()};

const RegisterRows registered_rows{{"row_bias_fwd", "x:Td bias:d/f y:Td"},
                                   {"row_bias_bwd", "dy:Td dbias:d/f"}};

}  // namespace
}  // namespace mulligan::kernel_test::row_bias_test
