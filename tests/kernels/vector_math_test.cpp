// The SDK's exp, sigmoid and tanh against libm in double.
#include <gtest/gtest.h>
#include <mulligan/vector_math.hpp>

#include <cmath>
#include <limits>

namespace mulligan::sdk::vector_math_test {
namespace {

template <typename Fast, typename Exact>
double worst_relative_error(double low, double high, Fast fast, Exact exact) {
  double worst = 0;
  for (int i = 0; i <= 200000; ++i) {
    const auto x = static_cast<float>(low + (high - low) * i / 200000);
    const double expected = exact(static_cast<double>(x));
    if (expected != 0) worst = std::max(worst, std::abs(fast(x) - expected) / std::abs(expected));
  }
  return worst;
}

TEST(VectorMath, RelativeErrors) {
  const auto exact_exp = [](double x) { return std::exp(x); };
  const auto exact_tanh = [](double x) { return std::tanh(x); };
  const auto exact_sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  EXPECT_LT(worst_relative_error(-86.5, 88.7, fast_exp, exact_exp), 1.5e-7);
  EXPECT_LT(worst_relative_error(-86.5, 0, fast_exp_nonpositive, exact_exp), 1.5e-7);
  EXPECT_LT(worst_relative_error(-80, 80, fast_sigmoid, exact_sigmoid), 3e-7);
  for (const double range : {20.0, 1.0, 1e-3, 1e-20}) {
    EXPECT_LT(worst_relative_error(-range, range, fast_tanh, exact_tanh), 4e-7) << range;
  }
}

TEST(VectorMath, LimitsAndNotANumber) {
  const float infinity = std::numeric_limits<float>::infinity(),
              nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(fast_exp(-infinity), 0.0f);
  EXPECT_EQ(fast_exp(-1000.0f), 0.0f);
  EXPECT_EQ(fast_exp(0.0f), 1.0f);
  EXPECT_EQ(fast_exp(89.0f), infinity);
  EXPECT_EQ(fast_exp(infinity), infinity);
  EXPECT_TRUE(std::isnan(fast_exp(nan)));
  EXPECT_EQ(fast_exp_nonpositive(-infinity), 0.0f);
  EXPECT_EQ(fast_exp_nonpositive(0.0f), 1.0f);
  EXPECT_TRUE(std::isnan(fast_exp_nonpositive(nan)));
  EXPECT_EQ(fast_sigmoid(infinity), 1.0f);
  EXPECT_EQ(fast_sigmoid(-infinity), 0.0f);
  EXPECT_TRUE(std::isnan(fast_sigmoid(nan)));
  EXPECT_EQ(fast_tanh(infinity), 1.0f);
  EXPECT_EQ(fast_tanh(-infinity), -1.0f);
  EXPECT_EQ(fast_tanh(0.0f), 0.0f);
  EXPECT_TRUE(std::isnan(fast_tanh(nan)));
}

}  // namespace
}  // namespace mulligan::sdk::vector_math_test
