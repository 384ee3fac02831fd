// softcap against its formula (docs/kernels.md).
#include <cmath>

#include "tests/kernels/element_shapes.h"
#include "tests/kernels/operator_tests.h"
#include "tests/kernels/row_probe.h"

namespace mulligan::kernel_test::softcap_test {
namespace {

Operator softcap() {
  Operator op{.forward = "softcap_fwd", .backward = "softcap_bwd"};
  for (const Shape& shape : kShapes) {
    op.cases.push_back({{{"z", shape, std::nullopt, normal(0, 30)}}, {{"y", shape}}, {{"cap", 30.0}}});
  }
  op.cases.push_back({{{"z", {200}, std::nullopt, normal(0, 1e-3)}}, {{"y", {200}}}, {{"cap", 15.0}}});
  return op.computes([](auto& call) {
    using std::tanh;
    auto& z = call.in("z");
    for (std::int64_t i = 0; i < z.size(); ++i) {
      call.out("y")[i] = call.attribute("cap") * tanh(z[i] / call.attribute("cap"));
    }
  });
}

const RegisterOperator registered{softcap()};

const RegisterRows registered_rows{{"softcap_fwd", "z:TV y:TV", "cap=3"},
                                   {"softcap_bwd", "z:TV dy:TV dz:TV", "cap=3"}};

}  // namespace
}  // namespace mulligan::kernel_test::softcap_test
