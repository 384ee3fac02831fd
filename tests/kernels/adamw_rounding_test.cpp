// The moments of AdamW in bf16: rounded to the nearest they stall, stochastically they follow those in fp32.
#include <gtest/gtest.h>

#include <bit>

#include "framework/core/philox.h"
#include "tests/kernels/backend_fixture.h"
#include "tests/kernels/operator_tests.h"

namespace mulligan::kernel_test::adamw_rounding_test {
namespace {

const CoversKernel covers_stochastic("adamw_stochastic_update");

constexpr std::int64_t elements = 512;
constexpr double stream = 1234567890123.0;

KernelCall call_of(const std::string& kernel, double beta2, const Array& first, const Array& second,
                   double step) {
  const Array gradient{MLG_F32, {elements}, std::vector<double>(elements, 0.5)},
      master{MLG_F32, {elements}, std::vector<double>(elements, 1.0)},
      scalars{MLG_F32, {8}, {1e-3, 1.0, 1.0, 0.9, 0.1, 1.0, step, 0}};
  KernelCall call = kernel_call(
      kernel, "gradient master exp_avg exp_avg_sq scalars", {gradient, master, first, second, scalars},
      {{"lr_multiplier", 1}, {"weight_decay", 0}, {"beta2", beta2}, {"eps", 1e-8}, {"average_decay", 0}});
  if (kernel == "adamw_stochastic_update") call.attributes["stream"] = stream;
  return call;
}

// The mean second moment after 2,000 updates with g^2 = 0.25, from 1.
double after_2000(const std::string& kernel, mlg_dtype state, double beta2) {
  Array first{state, {elements}, std::vector<double>(elements, 0.0)},
      second{state, {elements}, std::vector<double>(elements, 1.0)};
  for (int step = 1; step <= 2000; ++step) {
    const KernelResult result = backend_with_threads(2).run(call_of(kernel, beta2, first, second, step));
    first = result.written.at("exp_avg");
    second = result.written.at("exp_avg_sq");
  }
  double sum = 0;
  for (const double v : second.values) sum += v;
  return sum / static_cast<double>(elements);
}

TEST(AdamwRounding, SecondMomentsInBf16StallUnlessTheyAreRoundedStochastically) {
  struct Row {
    double beta2, exact, nearest;
  };
  // The last one stands still at a tie: half of the distance to the neighbour, which is odd.
  for (const Row& row : {Row{0.999, 0.351, 1.000}, Row{0.99, 0.250, 0.348}, Row{0.95, 0.250, 0.2695}}) {
    SCOPED_TRACE(row.beta2);
    EXPECT_NEAR(after_2000("adamw_update", MLG_F32, row.beta2), row.exact, 5e-4);
    EXPECT_NEAR(after_2000("adamw_update", MLG_BF16, row.beta2), row.nearest, 5e-4);
    EXPECT_NEAR(after_2000("adamw_stochastic_update", MLG_BF16, row.beta2), row.exact, 3e-3);
  }
}

// Every stored moment is what the documented random number makes of the exact one.
TEST(AdamwRounding, TheRandomNumbersAreThoseOfTheirStream) {
  const Array first{MLG_BF16, {elements}, std::vector<double>(elements, 0.25)},
      second{MLG_BF16, {elements}, std::vector<double>(elements, 1.0)};
  const double step = 77;
  const KernelResult result =
      backend_with_threads(3).run(call_of("adamw_stochastic_update", 0.999, first, second, step));
  const auto number = static_cast<std::uint64_t>(stream);
  const std::uint64_t purpose = 0x6164616D77;
  const float exact_first = 0.9f * 0.25f + 0.1f * 0.5f, exact_second = 0.999f * 1.0f + 0.001f * 0.25f;
  const auto rounded = [](float value, std::uint32_t bits) {
    return std::bit_cast<float>((std::bit_cast<std::uint32_t>(value) + (bits & 0xFFFFu)) & 0xFFFF0000u);
  };
  int wrong = 0;
  for (std::uint32_t i = 0; i < elements; ++i) {
    const auto words =
        sdk::philox4x32({i, static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(purpose),
                         static_cast<std::uint32_t>(purpose >> 32)},
                        {static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(number >> 32)});
    // The last bit of the exact value decides where the random number is just at the edge.
    wrong += result.written.at("exp_avg").values[i] != static_cast<double>(rounded(exact_first, words[0]));
    wrong +=
        result.written.at("exp_avg_sq").values[i] != static_cast<double>(rounded(exact_second, words[1]));
  }
  EXPECT_LE(wrong, 2);
}

TEST(AdamwRounding, BothMomentsMustBeBf16) {
  const Array wide{MLG_F32, {elements}, std::vector<double>(elements, 1.0)};
  EXPECT_NE(backend_with_threads(1).refusal(call_of("adamw_stochastic_update", 0.99, wide, wide, 1)), "");
}

}  // namespace
}  // namespace mulligan::kernel_test::adamw_rounding_test
