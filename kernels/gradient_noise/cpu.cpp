// gradient_noise:  what is to be added to a gradient g, element by element, in f32. The call has all of it,
// or a part: from element `first` on, of d = `elements`:
//   bf16_round       bf16(g) - g, to the nearest, ties to even
//   bf16_stochastic  bf16(g) - g, up with the probability of the part cut off (16 random bits)
//   relative         sigma g xi
//   norm             sigma sqrt(squares / d) xi, with squares the sum of g^2
//   anneal           sigma xi
// xi is standard normal (Box-Muller in f64, as PhiloxStream::normal): number first + i + 2^32 step of the
// stream that key names. A gradient that is not finite is not rounded.
//
// Determinism: elements are independent.
#include "kernels/gradient_noise/signature.h"

#include <mulligan/philox.hpp>

#include <cmath>
#include <numbers>

#include "plugins/backends/cpu/math/row_math.h"

namespace mulligan::cpu::gradient_noise {
namespace {

double normal(const std::array<std::uint32_t, 4>& words) {
  const double radius_draw = (static_cast<double>(words[0]) + 1.0) * 0x1.0p-32;
  const double angle_draw = static_cast<double>(words[1]) * 0x1.0p-32;
  return std::sqrt(-2.0 * std::log(radius_draw)) * std::cos(2.0 * std::numbers::pi * angle_draw);
}

struct GradientNoise : shapes::GradientNoise {
  static void run(const Launch& launch) {
    const sdk::PhiloxKey stream(launch.data<const std::int32_t>(key));
    const std::uint64_t begins = (static_cast<std::uint64_t>(*launch.data<const std::int32_t>(step)) << 32) +
                                 static_cast<std::uint64_t>(launch.attribute(first));
    const float by = *launch.data<const float>(sigma);
    const auto* g = launch.data<const float>(gradient);
    auto* out = launch.data<float>(noise);
    const std::int64_t count = launch.size(gradient);
    const auto each = [&](auto&& value) {
      for_elements(launch, count, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) out[i] = value(i);
      });
    };
    const auto words = [&](std::int64_t i) { return stream.block(begins + static_cast<std::uint64_t>(i)); };
    const auto xi = [&](std::int64_t i) { return static_cast<float>(normal(words(i))); };
    switch (static_cast<int>(launch.attribute(mode))) {
      case bf16_round:
        return each([&](std::int64_t i) {
          return std::isfinite(g[i]) ? static_cast<float>(bfloat16(g[i])) - g[i] : 0.0f;
        });
      case bf16_stochastic:
        return each([&](std::int64_t i) {
          return std::isfinite(g[i]) ? sdk::stochastic_bf16(g[i], words(i)[0]) - g[i] : 0.0f;
        });
      case relative:
        return each([&](std::int64_t i) { return by * g[i] * xi(i); });
      case norm: {
        const double squares_sum = *launch.data<const double>(squares);
        const float scale = by * static_cast<float>(std::sqrt(squares_sum / launch.attribute(elements)));
        return each([&](std::int64_t i) { return scale * xi(i); });
      }
      default:
        return each([&](std::int64_t i) { return by * xi(i); });
    }
  }
};

const Register registered = sdk::cpu_kernel<GradientNoise>();

}  // namespace
}  // namespace mulligan::cpu::gradient_noise
