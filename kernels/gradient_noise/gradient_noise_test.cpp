// gradient_noise: the host's definition of the normal numbers, and of the two roundings to bf16.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "framework/core/philox.h"
#include "tests/kernels/backend_fixture.h"
#include "tests/kernels/operator_tests.h"
#include "tests/kernels/row_probe.h"

namespace mulligan::kernel_test::gradient_noise_test {
namespace {

const CoversKernel covers_gradient_noise("gradient_noise");

constexpr std::size_t count = 5000;
constexpr std::uint64_t step = 77;

std::vector<double> gradients() {
  std::vector<double> g;
  for (std::size_t i = 0; i < count; ++i) {
    const double sign = i % 3 == 0 ? -1.0 : 1.0;
    g.push_back(static_cast<float>(sign * std::exp2(static_cast<double>(i % 40) - 20.0) *
                                   (1.0 + 1e-4 * static_cast<double>(i))));
  }
  g[1] = 0.0;
  return g;
}

double squares_of(const std::vector<double>& g) {
  double sum = 0;
  for (const double x : g) sum += x * x;
  return sum;
}

// For the elements [first, first + part) of `g`.
KernelCall call_of(int mode, double sigma, const std::vector<double>& g, std::size_t first = 0,
                   std::size_t part = count) {
  const std::array<std::int32_t, 4> key = PhiloxStream(42, "noise/w").key();
  const auto begin = g.begin() + static_cast<std::ptrdiff_t>(first);
  const std::vector<std::int64_t> shape = {static_cast<std::int64_t>(part)};
  return kernel_call("gradient_noise", "gradient key step sigma squares noise",
                     {{MLG_F32, shape, {begin, begin + static_cast<std::ptrdiff_t>(part)}},
                      {MLG_I32, {4}, {key.begin(), key.end()}},
                      {MLG_I32, {1}, {static_cast<double>(step)}},
                      {MLG_F32, {1}, {sigma}},
                      {MLG_F64, {1}, {squares_of(g)}},
                      {MLG_F32, shape, {}}},
                     {{"mode", static_cast<double>(mode)},
                      {"first", static_cast<double>(first)},
                      {"elements", static_cast<double>(count)}});
}

std::vector<double> noise(int mode, double sigma, const std::vector<double>& g, int variant,
                          std::size_t first = 0, std::size_t part = count) {
  return backend_with_threads(variant).run(call_of(mode, sigma, g, first, part)).written.at("noise").values;
}

std::uint64_t number(std::size_t i) {
  return static_cast<std::uint64_t>(i) + (step << 32);
}

TEST(GradientNoise, NormalNumbersAreTheHosts) {
  const PhiloxStream stream(42, "noise/w");
  const std::vector<double> g = gradients();
  const double norm_scale = std::sqrt(squares_of(g) / static_cast<double>(count));
  for (const int variant : {1, 2, 3}) {
    const std::vector<double> relative = noise(3, 0.25, g, variant), norm = noise(4, 0.5, g, variant),
                              plain = noise(5, 2.0, g, variant);
    for (std::size_t i = 0; i < count; ++i) {
      const double xi = stream.normal(number(i));
      EXPECT_NEAR(relative[i], 0.25 * g[i] * xi, 3e-7 * std::abs(g[i] * xi)) << i;
      EXPECT_NEAR(norm[i], 0.5 * norm_scale * xi, 3e-7 * norm_scale * std::abs(xi)) << i;
      EXPECT_EQ(plain[i], 2.0 * static_cast<double>(static_cast<float>(xi))) << i;
    }
  }
}

// What ranks with slices of a gradient add is what one with the whole would.
TEST(GradientNoise, APartsNoiseIsThatOfTheWhole) {
  const std::vector<double> g = gradients();
  for (int mode = 1; mode <= 5; ++mode) {
    const std::vector<double> whole = noise(mode, 0.25, g, 1);
    for (const std::size_t first : {std::size_t{0}, std::size_t{1}, std::size_t{1667}, std::size_t{4999}}) {
      const std::size_t size = std::min<std::size_t>(1667, count - first);
      const std::vector<double> part = noise(mode, 0.25, g, 2, first, size);
      for (std::size_t i = 0; i < size; ++i) ASSERT_EQ(part[i], whole[first + i]) << mode << " " << first + i;
    }
  }
}

TEST(GradientNoise, RoundingGivesTheNearestBf16) {
  const std::vector<double> g = gradients(), added = noise(1, 1, g, 2);
  for (std::size_t i = 0; i < count; ++i) {
    const auto value = static_cast<float>(g[i]);
    const auto word = std::bit_cast<std::uint32_t>(value);
    const float nearest = std::bit_cast<float>((word + 0x7FFFu + ((word >> 16) & 1u)) & 0xFFFF0000u);
    EXPECT_EQ(value + static_cast<float>(added[i]), nearest) << i;
  }
}

TEST(GradientNoise, StochasticRoundingGivesANeighbourAndKeepsTheMean) {
  const std::vector<double> g(count, 1.0 + 0x1p-9);  // a quarter of the way from 1 to the next bf16, 1 + 2^-7
  const std::vector<double> added = noise(2, 1, g, 1);
  double sum = 0;
  for (const double x : added) {
    EXPECT_TRUE(x == -0x1p-9 || x == 0x1p-7 - 0x1p-9) << x;
    sum += x;
  }
  const double mean = sum / static_cast<double>(count);
  const double deviation = 0x1p-7 * std::sqrt(0.25 * 0.75 / static_cast<double>(count));
  EXPECT_LT(std::abs(mean), 4 * deviation);
  const std::vector<double> exact(count, -1.5);
  for (const double x : noise(2, 1, exact, 1)) EXPECT_EQ(x, 0);
}

TEST(GradientNoise, WhatIsNotFiniteIsNotRounded) {
  std::vector<double> g(count, 1.0);
  g[0] = INFINITY;
  g[1] = -INFINITY;
  for (const int mode : {1, 2}) {
    const std::vector<double> added = noise(mode, 1, g, 1);
    EXPECT_EQ(added[0], 0);
    EXPECT_EQ(added[1], 0);
  }
}

TEST(GradientNoise, TheNormModeNeedsTheSum) {
  KernelCall call = call_of(4, 1, gradients());
  call.arguments.erase("squares");
  const std::string sentence = backend_with_threads(1).refusal(call);
  EXPECT_NE(sentence.find("needs the argument squares"), std::string::npos) << sentence;
}

const RegisterRows registered_rows{
    {"gradient_noise", "gradient:d/f key:4/i step:1/i sigma:1/f noise:d/f", "mode=3 elements=72"}};

}  // namespace
}  // namespace mulligan::kernel_test::gradient_noise_test
