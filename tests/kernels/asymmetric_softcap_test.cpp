// asymmetric_softcap against its formula (docs/kernels.md).
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/backend_fixture.h"
#include "tests/kernels/operator_tests.h"

namespace mulligan::kernel_test {
namespace {

Case capped_case(std::int64_t rows, std::int64_t columns, double spread, double positive, double negative) {
  return {{{"z", {rows, columns}, std::nullopt, normal(0, spread)},
           {"positive", {1}, MLG_F32, values({positive})},
           {"negative", {1}, MLG_F32, values({negative})}},
          {{"y", {rows, columns}}},
          {}};
}

Operator asymmetric_softcap() {
  Operator op{.forward = "asymmetric_softcap_fwd", .backward = "asymmetric_softcap_bwd", .cases = {}};
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

const RegisterOperator test{asymmetric_softcap()};

// Logits at zero and far beyond the caps: the result is the cap, and so is what a unit of the cap changes.
TEST(AsymmetricSoftcap, SaturatedLogits) {
  const Array z{MLG_F32, {1, 4}, {0, 1e6, -1e30, 3000}}, positive{MLG_F32, {1}, {30}},
      negative{MLG_F32, {1}, {20}}, zero{MLG_F32, {1}, {0}}, ones{MLG_F32, {1, 4}, {1, 1, 1, 1}};
  BackendFixture& backend = backend_with_threads(1);
  const auto forward = backend.run(
      {.kernel = "asymmetric_softcap_fwd",
       .arguments = {{"z", z}, {"positive", positive}, {"negative", negative}, {"y", {MLG_F32, {1, 4}, {}}}},
       .attributes = {},
       .aliases = {}});
  const std::vector<double> expected = {0, 30, -20, 30};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(forward.written.at("y").values[i], expected[i], 1e-4) << i;
  const auto backward = backend.run({.kernel = "asymmetric_softcap_bwd",
                                     .arguments = {{"z", z},
                                                   {"positive", positive},
                                                   {"negative", negative},
                                                   {"dy", ones},
                                                   {"dz", ones},
                                                   {"dpositive", zero},
                                                   {"dnegative", zero}},
                                     .attributes = {{"accumulate_dz", 0}},
                                     .aliases = {}});
  EXPECT_NEAR(backward.written.at("dz").values[0], 1.0, 1e-6);
  EXPECT_NEAR(backward.written.at("dz").values[1], 0.0, 1e-6);
  EXPECT_NEAR(backward.written.at("dpositive").values[0], 2.0, 1e-5);
  EXPECT_NEAR(backward.written.at("dnegative").values[0], -1.0, 1e-5);
}

}  // namespace
}  // namespace mulligan::kernel_test
