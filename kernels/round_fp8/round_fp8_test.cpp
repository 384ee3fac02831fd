// round_fp8 against the list of all numbers that 8 bits stand for (OCP 8-bit floating point, 2023).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/kernels/backend_fixture.h"
#include "tests/kernels/operator_tests.h"
#include "tests/kernels/row_probe.h"

namespace mulligan::kernel_test::round_fp8_test {
namespace {

const CoversKernel covers_round_fp8("round_fp8");

// The finite numbers from 0 on, in the order of their codes.
std::vector<double> numbers(int exponent_bits) {
  const int mantissa_bits = 7 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
  // E4M3 gives up its last code alone for NaN, E5M2 the whole last exponent for infinity and NaN.
  const int codes = exponent_bits == 4 ? 127 : 124;
  std::vector<double> all;
  for (int code = 0; code < codes; ++code) {
    const int exponent = code >> mantissa_bits, mantissa = code & ((1 << mantissa_bits) - 1);
    const double fraction = std::ldexp(mantissa, -mantissa_bits);
    all.push_back(exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias));
  }
  return all;
}

// The nearest one, of two that are equally near that of the even code.
double nearest(const std::vector<double>& all, double size) {
  const auto above = static_cast<std::size_t>(std::ranges::lower_bound(all, size) - all.begin());
  if (above == all.size()) return all.back();
  if (above == 0 || all[above] == size) return all[above];
  const double up = all[above] - size, down = size - all[above - 1];
  return up < down || (up == down && above % 2 == 0) ? all[above] : all[above - 1];
}

class RoundFp8 : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Formats, RoundFp8, testing::Values(4, 5),
                         [](const auto& info) { return info.param == 4 ? "E4M3" : "E5M2"; });

TEST_P(RoundFp8, IsTheNearestNumberOfTheFormat) {
  const std::vector<double> all = numbers(GetParam());
  ASSERT_EQ(all.back(), GetParam() == 4 ? 448 : 57344);
  std::vector<double> inputs{INFINITY, 1e30, 3 * all.back(), all[1] / 2, std::nextafter(all[1] / 2, 1.0),
                             1e-30};
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    const double middle = (all[i] + all[i + 1]) / 2, step = all[i + 1] - all[i];
    for (const double x : {all[i], middle, middle - step / 64, middle + step / 64, all[i] + step / 3})
      inputs.push_back(x);
  }
  for (const mlg_dtype dtype : {MLG_F32, MLG_BF16}) {
    for (const double scale : {1.0, 0x1p-20, 8.0}) {
      // A whole number of 16-byte accesses, and one that is none.
      for (const std::size_t count : {inputs.size() / 8 * 8, inputs.size() / 8 * 8 - 3}) {
        Array x{dtype, {static_cast<std::int64_t>(count)}, {}};
        for (std::size_t i = 0; i < count; ++i)
          x.values.push_back(round_to(dtype, (i % 3 == 1 ? -scale : scale) * inputs[i]));
        const KernelResult result = backend_with_threads(2).run(
            kernel_call("round_fp8", "x y", {x, {dtype, x.shape, {}}},
                        {{"exponent_bits", double(GetParam())}, {"scale", scale}}));
        const std::vector<double>& y = result.written.at("y").values;
        for (std::size_t i = 0; i < count; ++i) {
          const double expected =
              std::copysign(scale * nearest(all, std::abs(x.values[i]) / scale), x.values[i]);
          ASSERT_EQ(y[i], expected) << dtype_name(dtype) << " " << x.values[i] << " / " << scale;
          ASSERT_EQ(std::signbit(y[i]), std::signbit(expected)) << x.values[i];
        }
      }
    }
  }
}

TEST_P(RoundFp8, KeepsNaN) {
  const Array x{MLG_F32, {2}, {std::numeric_limits<double>::quiet_NaN(), 1.0}};
  const KernelResult result =
      backend_with_threads(1).run(kernel_call("round_fp8", "x y", {x, {MLG_F32, x.shape, {}}},
                                              {{"exponent_bits", double(GetParam())}, {"scale", 0.5}}));
  EXPECT_TRUE(std::isnan(result.written.at("y").values[0]));
  EXPECT_EQ(result.written.at("y").values[1], 1.0);
}

const RegisterRows registered_rows{{"round_fp8", "x:Td y:Td", "exponent_bits=4 scale=0.25"}};

}  // namespace
}  // namespace mulligan::kernel_test::round_fp8_test
