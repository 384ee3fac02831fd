// rms_norm, residual_mix_norm, scaled_add_norm against their formulas (docs/kernels.md).
#include <cmath>

#include "tests/kernels/operator_tests.h"

namespace mulligan::kernel_test {
namespace {

constexpr double kEps = 1.1920928955078125e-7;  // 2^-23

// scale * norm(x[row]) -> y[row]
template <typename S>
void norm_row(Values<S>& x, Values<S>& y, std::int64_t row, double scale, double eps) {
  const std::int64_t width = x.dim(1);
  S squares = 0.0;
  for (std::int64_t j = 0; j < width; ++j) squares += x(row, j) * x(row, j);
  using std::sqrt;
  const S root = sqrt(squares / S(static_cast<double>(width)) + S(eps));
  for (std::int64_t j = 0; j < width; ++j) y(row, j) = S(scale) * x(row, j) / root;
}

Case rms_case(std::int64_t rows, std::int64_t width, double scale, double eps = kEps) {
  return {{{"x", {rows, width}}}, {{"y", {rows, width}}}, {{"scale", scale}, {"eps", eps}}};
}

// The widest rows are taken in several slices by the cuda backend, one or several elements at a time.
Operator rms_norm() {
  Operator op{.forward = "rms_norm_fwd", .backward = "rms_norm_bwd", .cases = {}};
  op.cases = {rms_case(3, 7, 1.0),      rms_case(5, 64, 0.5),   rms_case(33, 129, 1.0, 0.01),
              rms_case(301, 512, 0.25), rms_case(3, 4099, 0.5), rms_case(2, 16392, 1.0)};
  return op.computes([](auto& call) {
    for (std::int64_t row = 0; row < call.in("x").dim(0); ++row) {
      norm_row(call.in("x"), call.out("y"), row, call.attribute("scale"), call.attribute("eps"));
    }
  });
}

Case mix_case(std::int64_t tokens, std::int64_t width, double scale) {
  const Shape rows{tokens, width};
  return {{{"x", rows}, {"x0", rows}, {"mix", {2, width}, MLG_F32}},
          {{"y", rows}, {"n", rows}},
          {{"scale", scale}, {"eps", kEps}}};
}

Operator residual_mix_norm() {
  Operator op{.forward = "residual_mix_norm_fwd", .backward = "residual_mix_norm_bwd", .cases = {}};
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

Case add_case(std::int64_t tokens, std::int64_t width, double scale) {
  const Shape rows{tokens, width};
  return {{{"x", rows}, {"a", rows}, {"s", {width}, MLG_F32}},
          {{"y", rows}, {"n", rows}},
          {{"scale", scale}, {"eps", kEps}}};
}

Operator scaled_add_norm() {
  Operator op{.forward = "scaled_add_norm_fwd", .backward = "scaled_add_norm_bwd", .cases = {}};
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

const RegisterOperator tests[] = {RegisterOperator(rms_norm()), RegisterOperator(residual_mix_norm()),
                                  RegisterOperator(scaled_add_norm())};

}  // namespace
}  // namespace mulligan::kernel_test
