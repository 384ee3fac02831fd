// sum_f64, sum_squares_f64, clip_scale, record_scalar against their formulas.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/backend_fixture.h"
#include "tests/kernels/operator_tests.h"
#include "tests/kernels/row_probe.h"

namespace mulligan::kernel_test::reductions_test {
namespace {

// The last is a whole number of 16-byte accesses.
const Shape kShapes[] = {{1}, {17, 3}, {2, 5, 3, 7}, {70001}, {35, 2008}};

Operator total(const char* kernel, bool of_squares) {
  Operator op{.forward = kernel, .free_extents = {"x"}};
  op.tolerance_f32 = op.tolerance_bf16 = 1e-12;
  const auto add = [&](const Operand& x) {
    op.cases.push_back({{x, {"total", {1}, MLG_F64, values({0.125})}}, {{"total", {1}, MLG_F64}}, {}});
  };
  for (const Shape& shape : kShapes) add({"x", shape});
  if (!of_squares) {
    op.dtypes = {MLG_F32};
    add({"x", {37}, MLG_F64});
  }
  return op.computes([of_squares](auto& call) {
    auto& x = call.in("x");
    call.out("total")[0] = call.in("total")[0];
    for (std::int64_t i = 0; i < x.size(); ++i) call.out("total")[0] += of_squares ? x[i] * x[i] : x[i];
  });
}

// Below the limit, at it, far above, no gradient at all, and no limit.
Operator clip_scale() {
  Operator op{.forward = "clip_scale", .dtypes = {MLG_F32}};
  op.tolerance_f32 = 1e-7;
  for (const auto& [total, max_norm] :
       {std::pair{0.01, 0.3}, {0.09, 0.3}, {1e6, 0.3}, {0.0, 0.3}, {1e6, 0.0}, {0.0, 0.0}}) {
    op.cases.push_back({{{"total", {1}, MLG_F64, values({total})}},
                        {{"norm", {1}, MLG_F32}, {"scale", {1}, MLG_F32}},
                        {{"max_norm", max_norm}}});
  }
  return op.computes([](auto& call) {
    using std::sqrt;
    const double norm = value_of(sqrt(call.in("total")[0])), max_norm = call.attribute("max_norm");
    call.out("norm")[0] = norm;
    call.out("scale")[0] = max_norm == 0 ? 1.0 : std::min(1.0, max_norm / (norm + 1e-6));
  });
}

const RegisterOperator registered{total("sum_f64", false), total("sum_squares_f64", true), clip_scale()};

const CoversKernel covers_record_scalar("record_scalar");

TEST(RecordScalar, WritesOneElementOfTheRing) {
  for (const mlg_dtype dtype : {MLG_F32, MLG_F64}) {
    for (const auto& [index, place] : {std::pair{0.0, 0}, {4.0, 4}, {5.0, 0}, {123.0, 3}}) {
      const auto result = backend_with_threads(1).run(
          kernel_call("record_scalar", "x index ring",
                      {{dtype, {1}, {2.5}}, {MLG_I64, {1}, {index}}, {MLG_F64, {5}, {10, 11, 12, 13, 14}}}));
      std::vector<double> expected{10, 11, 12, 13, 14};
      expected[place] = 2.5;
      EXPECT_EQ(result.written.at("ring").values, expected);
    }
  }
}

const RegisterRows registered_rows{{"sum_f64", "x:Td/f total:1/d"},
                                   {"sum_squares_f64", "x:Td/f total:1/d"},
                                   {"clip_scale", "total:1/d norm:1/f scale:1/f", "max_norm=1"},
                                   {"record_scalar", "x:1/f index:1/l ring:m/d"}};

}  // namespace
}  // namespace mulligan::kernel_test::reductions_test
