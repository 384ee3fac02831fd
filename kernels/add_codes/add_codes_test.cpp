// add_codes: the codes that lie at their bits, one fused operation each, for every width and odd sizes; bit by
// bit the same on every backend.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/backend_fixture.h"
#include "tests/kernels/operator_tests.h"
#include "tests/kernels/row_probe.h"

namespace mulligan::kernel_test::add_codes_test {
namespace {

const CoversKernel covers_add_codes("add_codes");

KernelCall call_of(int bits, std::int64_t count, double step, double zero) {
  const std::int64_t bytes = (count * bits + 7) / 8;
  KernelCall call = kernel_call("add_codes", "codes grid values",
                                {{MLG_U8, {bytes}, {}}, {MLG_F64, {2}, {step, zero}}, {MLG_F32, {count}, {}}},
                                {{"bits", static_cast<double>(bits)}});
  for (std::int64_t i = 0; i < bytes; ++i)
    call.arguments["codes"].values.push_back(static_cast<double>((i * 2654435761LL >> 9) & 255));
  for (std::int64_t i = 0; i < count; ++i) {
    call.arguments["values"].values.push_back(static_cast<float>(
        std::sin(static_cast<double>(i) + 1) * std::exp2(static_cast<double>(i % 20) - 15)));
  }
  return call;
}

// One bit after the other.
double code_at(const std::vector<double>& bytes, std::int64_t i, int bits) {
  double code = 0;
  for (std::int64_t b = 0; b < bits; ++b) {
    const std::int64_t bit = i * bits + b;
    const auto byte = static_cast<unsigned>(bytes[static_cast<std::size_t>(bit / 8)]);
    if (byte >> (bit % 8) & 1U) code += std::exp2(static_cast<double>(b));
  }
  return code;
}

TEST(AddCodes, AddsWhatEachCodeStandsFor) {
  struct Grid {
    double step, zero;
  };
  // A usual one, a constant tensor's, none, and one whose zero lies far outside of the codes.
  for (const Grid grid : {Grid{1.0 / 3e5, 7}, Grid{0.1, -1}, Grid{0, 0}, Grid{1e-9 / 7, 4e10}}) {
    for (int bits = 2; bits <= 8; ++bits) {
      for (const std::int64_t count : {1, 2, 3, 5, 8, 13, 64, 1000, 4099}) {
        SCOPED_TRACE(testing::Message() << grid.step << ", " << bits << " bits, " << count);
        const KernelCall call = call_of(bits, count, grid.step, grid.zero);
        std::vector<double> expected;
        for (std::int64_t i = 0; i < count; ++i) {
          const double code = code_at(call.arguments.at("codes").values, i, bits);
          expected.push_back(static_cast<float>(std::fma(
              grid.step, code - grid.zero, call.arguments.at("values").values[static_cast<std::size_t>(i)])));
        }
        for (const int variant : {1, 3}) {
          EXPECT_EQ(backend_with_threads(variant).run(call).written.at("values").values, expected);
        }
        if (reference_backend() != nullptr) {
          EXPECT_EQ(reference_backend()->run(call).bytes, backend_with_threads(1).run(call).bytes);
        }
      }
    }
  }
}

TEST(AddCodes, RefusesCodesOfAnotherLength) {
  KernelCall call = call_of(3, 9, 1, 0);
  call.attributes["bits"] = 4;
  EXPECT_NE(backend_with_threads(1).refusal(call).find("argument codes"), std::string::npos);
  for (const double bits : {1.0, 9.0, 2.5}) {
    call.attributes["bits"] = bits;
    EXPECT_NE(backend_with_threads(1).refusal(call).find("bits"), std::string::npos) << bits;
  }
}

const RegisterRows registered_rows{{"add_codes", "codes:e/u grid:2/d values:F/f", "bits=3"}};

}  // namespace
}  // namespace mulligan::kernel_test::add_codes_test
