// scale_rows against its formula (docs/kernels.md), and scaled_add_norm without what it does not need.
#include <gtest/gtest.h>

#include "tests/kernels/backend_fixture.h"
#include "tests/kernels/operator_tests.h"
#include "tests/kernels/row_probe.h"

namespace mulligan::kernel_test::scale_rows_test {
namespace {

Case scale_case(std::int64_t rows, std::int64_t width) {
  return {{{"w", {rows, width}}, {"s", {rows}, MLG_F32}}, {{"y", {rows, width}}}, {}};
}

// The widest rows are taken in several slices by the cuda backend, one or several elements at a time.
Operator scale_rows() {
  Operator op{.forward = "scale_rows_fwd", .backward = "scale_rows_bwd"};
  op.cases = {scale_case(3, 5),   scale_case(7, 37),   scale_case(1, 1),    scale_case(512, 64),
              scale_case(5, 512), scale_case(2, 4099), scale_case(2, 16392)};
  op.f32_gradients = {"dw"};
  op.f32_cotangents = {"dy"};
  return op.computes([](auto& call) {
    auto& w = call.in("w");
    for (std::int64_t i = 0; i < w.dim(0); ++i) {
      for (std::int64_t j = 0; j < w.dim(1); ++j) call.out("y")(i, j) = call.in("s")[i] * w(i, j);
    }
  });
}

const RegisterOperator registered{scale_rows()};

// Without ds the gradients need no a, and without s it is ones.
TEST(ScaledAddNorm, NeedsAForTheGradientOfTheScaleAlone) {
  for (const std::int64_t width : {5, 24, 4104}) {
    for (const mlg_dtype dtype : {MLG_F32, MLG_BF16}) {
      SCOPED_TRACE(testing::Message() << width << " " << dtype);
      Random random(1);
      const auto rows = [&] { return draw(dtype, {3, width}, random); };
      KernelCall call =
          kernel_call("scaled_add_norm_bwd", "y dy dn dx da", {rows(), rows(), rows(), rows(), rows()},
                      {{"scale", 0.5}, {"eps", 1e-6}, {"accumulate_dx", 0}, {"accumulate_da", 0}});
      const KernelResult bare = backend_with_threads(1).run(call);
      EXPECT_EQ(bare.bytes.at("dx"), bare.bytes.at("da"));
      call.arguments["a"] = rows();
      call.arguments["s"] = {MLG_F32, {width}, std::vector<double>(width, 1.0)};
      const KernelResult full = backend_with_threads(1).run(call);
      EXPECT_EQ(full.bytes.at("dx"), bare.bytes.at("dx"));
      EXPECT_EQ(full.bytes.at("da"), bare.bytes.at("da"));
    }
  }
  const Array rows{MLG_F32, {3, 5}, {}}, columns{MLG_F32, {5}, {}};
  const std::string refusal = backend_with_threads(1).refusal(
      kernel_call("scaled_add_norm_bwd", "y dy s ds", {rows, rows, columns, columns},
                  {{"scale", 1}, {"eps", 0}, {"accumulate_dx", 0}, {"accumulate_da", 0}}));
  EXPECT_NE(refusal.find("argument ds must be absent where a is absent"), std::string::npos) << refusal;
}

const RegisterRows registered_rows{{"scale_rows_fwd", "w:Td s:T/f y:Td"},
                                   {"scale_rows_bwd", "w:Td s:T/f dy:Td/f dw:Td/f ds:T/f"}};

}  // namespace
}  // namespace mulligan::kernel_test::scale_rows_test
