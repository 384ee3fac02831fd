// cast rounds as it should.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/backend_fixture.h"
#include "tests/kernels/operator_tests.h"
#include "tests/kernels/row_probe.h"

namespace mulligan::kernel_test::cast_test {
namespace {

const CoversKernel covers_cast("cast");

// Numbers at and next to every kind of rounding boundary of f32, bf16 and f16, and the special ones.
std::vector<double> awkward_numbers() {
  std::vector<double> numbers{0.0,     -0.0,    INFINITY, -INFINITY, std::nan(""),
                              65504.0, 65519.0, 65520.0,  3.4e38,    1e39};
  Random random(5);
  for (int i = 0; i < 3000; ++i) {
    const double base = std::ldexp(1.0 + std::uniform_int_distribution<int>(0, 2047)(random) / 2048.0,
                                   std::uniform_int_distribution<int>(-30, 20)(random));
    const double below = std::nextafter(base, 0.0), above = std::nextafter(base, HUGE_VAL);
    const double slightly_above = base * (1 + std::ldexp(1.0, -30)),
                 slightly_below = base * (1 - std::ldexp(1.0, -30));
    for (const double x : {base, below, above, slightly_above, slightly_below}) {
      numbers.push_back(i % 2 == 0 ? x : -x);
    }
  }
  return numbers;
}

// Every pair of dtypes gives exactly the value rounded once to nearest even, on any number of threads.
void check_casts(const std::vector<double>& numbers) {
  const mlg_dtype dtypes[] = {MLG_F32, MLG_BF16, MLG_F16, MLG_F64};
  for (const mlg_dtype from : dtypes) {
    for (const mlg_dtype to : dtypes) {
      Array x{from, {static_cast<std::int64_t>(numbers.size())}, {}};
      for (const double number : numbers) x.values.push_back(round_to(from, number));
      for (const int threads : {1, 3}) {
        const auto result =
            backend_with_threads(threads).run(kernel_call("cast", "x y", {x, {to, x.shape, {}}}));
        const std::vector<double>& y = result.written.at("y").values;
        for (std::size_t i = 0; i < numbers.size(); ++i) {
          const double expected = round_to(to, x.values[i]);
          ASSERT_TRUE(y[i] == expected || (std::isnan(y[i]) && std::isnan(expected)))
              << dtype_name(from) << " " << x.values[i] << " became " << dtype_name(to) << " " << y[i]
              << " and not " << expected;
          ASSERT_TRUE(std::isnan(expected) || std::signbit(y[i]) == std::signbit(expected)) << x.values[i];
        }
      }
    }
  }
}

TEST(Cast, RoundsOnceToNearestEven) {
  std::vector<double> numbers = awkward_numbers();
  check_casts(numbers);
  numbers.resize(numbers.size() / 8 * 8);  // a whole number of 16-byte accesses
  check_casts(numbers);
}

TEST(Cast, RefusesIntegersAndOtherShapes) {
  KernelCall call = kernel_call("cast", "x y", {{MLG_I32, {4}, {}}, {MLG_F32, {4}, {}}});
  EXPECT_NE(backend_with_threads(1).refusal(call).find("argument x"), std::string::npos);
  call.arguments["x"] = {MLG_F32, {5}, {}};
  EXPECT_NE(backend_with_threads(1).refusal(call).find("argument y"), std::string::npos);
}

const RegisterRows registered_rows{{"cast", "x:Td y:Td/f"}};

}  // namespace
}  // namespace mulligan::kernel_test::cast_test
