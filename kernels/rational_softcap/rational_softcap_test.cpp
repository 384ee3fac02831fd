// rational_softcap against its formula (docs/kernels.md).
#include <cmath>

#include "tests/kernels/element_shapes.h"
#include "tests/kernels/operator_tests.h"
#include "tests/kernels/row_probe.h"

namespace mulligan::kernel_test::rational_softcap_test {
namespace {

Operator rational_softcap() {
  Operator op{.forward = "rational_softcap_fwd", .backward = "rational_softcap_bwd"};
  for (const Shape& shape : kShapes) {
    op.cases.push_back(
        {{{"z", shape, std::nullopt, normal(0, 30)}}, {{"y", shape, MLG_F32}}, {{"cap", 15.0}}});
  }
  op.cases.push_back(
      {{{"z", {200}, std::nullopt, normal(0, 1e-3)}}, {{"y", {200}, MLG_F32}}, {{"cap", 2.0}}});
  return op.computes([](auto& call) {
    using std::sqrt;
    auto& z = call.in("z");
    using Scalar = std::decay_t<decltype(z[0])>;
    const Scalar cap(call.attribute("cap"));
    for (std::int64_t i = 0; i < z.size(); ++i) call.out("y")[i] = cap * z[i] / sqrt(z[i] * z[i] + cap * cap);
  });
}

const RegisterOperator registered{rational_softcap()};

const RegisterRows registered_rows{{"rational_softcap_fwd", "z:TV y:TV/f", "cap=3"},
                                   {"rational_softcap_bwd", "z:TV dy:TV/f dz:TV", "cap=3"}};

}  // namespace
}  // namespace mulligan::kernel_test::rational_softcap_test
