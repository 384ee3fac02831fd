// asymmetric_softcap against its formula (docs/kernels.md).
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/backend_fixture.h"
#include "tests/kernels/operator_tests.h"
#include "tests/kernels/row_probe.h"

namespace mulligan::kernel_test::asymmetric_softcap_test {
namespace {

Case capped_case(std::int64_t rows, std::int64_t columns, double spread, double positive, double negative) {
  return {{{"z", {rows, columns}, std::nullopt, normal(0, spread)},
           {"positive", {1}, MLG_F32, values({positive})},
           {"negative", {1}, MLG_F32, values({negative})}},
          {{"y", {rows, columns}}},
          {}};
}

Operator asymmetric_softcap() {
  Operator op{.forward = "asymmetric_softcap_fwd", .backward = "asymmetric_softcap_bwd"};
  op.cases = {capped_case(5, 7, 30, 30, 30), capped_case(17, 3, 20, 25, 8), capped_case(70, 64, 30, 12.5, 40),
              capped_case(1, 1, 1, 2, 3), capped_case(9, 1030, 30, 30, 20)};
  return op.computes([](auto& call) {
    using std::tanh;
    auto& z = call.in("z");
    for (std::int64_t i = 0; i < z.size(); ++i) {
      auto cap = z[i] > 0.0 ? call.in("positive")[0] : call.in("negative")[0];
      call.out("y")[i] = cap * tanh(z[i] / cap);
    }
  });
}

const RegisterOperator registered{asymmetric_softcap()};

// Logits at zero and far beyond the caps: the result is the cap, and so is what a unit of the cap changes.
TEST(AsymmetricSoftcap, SaturatedLogits) {
  const Array z{MLG_F32, {1, 4}, {0, 1e6, -1e30, 3000}}, positive{MLG_F32, {1}, {30}},
      negative{MLG_F32, {1}, {20}}, zero{MLG_F32, {1}, {0}}, ones{MLG_F32, {1, 4}, {1, 1, 1, 1}};
  BackendFixture& backend = backend_with_threads(1);
  const auto forward = backend.run(kernel_call("asymmetric_softcap_fwd", "z positive negative y",
                                               {z, positive, negative, {MLG_F32, {1, 4}, {}}}));
  const std::vector<double> expected = {0, 30, -20, 30};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(forward.written.at("y").values[i], expected[i], 1e-4) << i;
  const auto backward =
      backend.run(kernel_call("asymmetric_softcap_bwd", "z positive negative dy dz dpositive dnegative",
                              {z, positive, negative, ones, ones, zero, zero}, {{"accumulate_dz", 0}}));
  EXPECT_NEAR(backward.written.at("dz").values[0], 1.0, 1e-6);
  EXPECT_NEAR(backward.written.at("dz").values[1], 0.0, 1e-6);
  EXPECT_NEAR(backward.written.at("dpositive").values[0], 2.0, 1e-5);
  EXPECT_NEAR(backward.written.at("dnegative").values[0], -1.0, 1e-5);
}

// Logits small against their cap: of two nearly equal terms 2/3 u^3 is left. Many of both signs: the sum keeps the digits of f64.
TEST(AsymmetricSoftcap, GradientsOfCapsKeepTheirDigits) {
  const std::int64_t rows = 70, width = 1030;
  BackendFixture& backend = backend_with_threads(1);
  for (const double spread : {0.02, 0.5, 5.0, 60.0}) {
    SCOPED_TRACE(spread);
    Array z{MLG_F32, {rows, width}, {}}, dy{MLG_F32, {rows, width}, {}};
    const double caps[] = {30, 20};
    long double expected[2] = {}, magnitude[2] = {};
    for (std::int64_t i = 0; i < rows * width; ++i) {
      z.values.push_back(static_cast<float>(spread * std::sin(0.7 * static_cast<double>(i)) + 1e-9));
      dy.values.push_back(static_cast<float>(std::cos(1.3 * static_cast<double>(i))));
      const int side = z.values.back() > 0 ? 0 : 1;
      const long double u = static_cast<long double>(z.values.back()) / caps[side],
                        e = std::exp(-2 * std::fabs(u)), slope = 4 * e / ((1 + e) * (1 + e));
      const long double term =
          dy.values.back() *
          (std::fabs(u) < 1e-3L ? slope * (2 * u * u * u / 3) * (1 + u * u / 5) : std::tanh(u) - u * slope);
      expected[side] += term;
      magnitude[side] += std::fabs(term);
    }
    const auto backward =
        backend.run(kernel_call("asymmetric_softcap_bwd", "z positive negative dy dz dpositive dnegative",
                                {z,
                                 {MLG_F32, {1}, {caps[0]}},
                                 {MLG_F32, {1}, {caps[1]}},
                                 dy,
                                 dy,
                                 {MLG_F32, {1}, {0}},
                                 {MLG_F32, {1}, {0}}},
                                {{"accumulate_dz", 0}}));
    const char* names[] = {"dpositive", "dnegative"};
    for (int side = 0; side < 2; ++side) {
      const double ours = backward.written.at(names[side]).values[0];
      EXPECT_NEAR(ours, static_cast<double>(expected[side]), 2e-7 * static_cast<double>(magnitude[side]))
          << names[side];
    }
  }
}

const RegisterRows registered_rows{
    {"asymmetric_softcap_fwd", "z:TV positive:1/f negative:1/f y:TV"},
    {"asymmetric_softcap_bwd", "z:TV positive:1/f negative:1/f dy:TV dz:TV dpositive:1/f dnegative:1/f"}};

}  // namespace
}  // namespace mulligan::kernel_test::asymmetric_softcap_test
