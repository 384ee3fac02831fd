// axpby, scale_by and lerp_into against their formulas (docs/kernels.md).
#include <cmath>

#include "tests/kernels/element_shapes.h"
#include "tests/kernels/operator_tests.h"
#include "tests/kernels/row_probe.h"

namespace mulligan::kernel_test::axpby_test {
namespace {

// Every allowed combination of dtypes, adding to y and overwriting it (then y starts as NaN).
Operator axpby() {
  Operator op{.forward = "axpby", .dtypes = {MLG_F32}};
  op.tolerance_f32 = 4e-3;  // y may be bf16: half a unit of 8 bits
  for (const mlg_dtype narrow : {MLG_BF16, MLG_F16}) {
    for (const unsigned bits : {0u, 1u, 2u, 3u, 4u, 5u, 6u, 7u}) {
      if (bits == 0 && narrow == MLG_F16) continue;  // all f32: once is enough
      const auto dtype = [&](unsigned bit) { return (bits & bit) != 0 ? narrow : MLG_F32; };
      const mlg_dtype a = dtype(1), b = dtype(2), y = dtype(4);
      for (const double accumulate : {0.0, 1.0}) {
        const Generator before = accumulate != 0 ? normal() : normal(std::nan(""));
        for (const Shape& shape : kMatrices) {
          op.cases.push_back({{{"a", shape, a}, {"b", shape, b}, {"y", shape, y, before}},
                              {{"y", shape, y}},
                              {{"alpha", 0.75}, {"beta", -1.5}, {"accumulate_y", accumulate}}});
        }
      }
    }
  }
  return op.computes([](auto& call) {
    for (std::int64_t i = 0; i < call.in("a").size(); ++i) {
      auto& y = call.out("y")[i];
      if (call.attribute("accumulate_y") != 0) y = call.in("y")[i];
      y += call.in("a")[i] * call.attribute("alpha");
      if (call.has("b")) y += call.in("b")[i] * call.attribute("beta");
    }
  });
}

Operator scale_by() {
  Operator op{.forward = "scale_by", .free_extents = {"x"}, .dtypes = {MLG_F32}};
  for (const double scale : {0.3, 1.0}) {
    for (const Shape& shape : kMatrices) {
      op.cases.push_back({{{"x", shape}, {"scale", {1}, MLG_F32, values({scale})}}, {{"x", shape}}, {}});
    }
  }
  return op.computes([](auto& call) {
    for (std::int64_t i = 0; i < call.in("x").size(); ++i)
      call.out("x")[i] = call.in("x")[i] * call.in("scale")[0];
  });
}

Operator lerp_into() {
  Operator op{.forward = "lerp_into"};
  op.tolerance_bf16 = 2e-5;  // only x is bf16, and its values are exact
  for (const Shape& shape : kShapes) {
    op.cases.push_back(
        {{{"average", shape, MLG_F32}, {"x", shape}}, {{"average", shape, MLG_F32}}, {{"decay", 0.9965}}});
  }
  return op.computes([](auto& call) {
    const double decay = call.attribute("decay");
    for (std::int64_t i = 0; i < call.in("x").size(); ++i) {
      call.out("average")[i] = call.in("average")[i] * decay + call.in("x")[i] * (1 - decay);
    }
  });
}

const RegisterOperator registered{axpby(), scale_by(), lerp_into()};

const RegisterRows registered_rows{{"axpby", "a:Td b:Td y:Td", "alpha=0.7 beta=0.3"},
                                   {"scale_by", "x:Td/f scale:1/f"},
                                   {"lerp_into", "average:Td/f x:Td/f", "decay=0.9"}};

}  // namespace
}  // namespace mulligan::kernel_test::axpby_test
