#pragma once

#include <mulligan/call_checks.hpp>

namespace mulligan::shapes {

struct GradientNoise {
  static constexpr const char* name = "gradient_noise";
  static constexpr const char* signature =
      "in gradient, in key, in step, in sigma, in? squares, out noise; mode first elements";
  enum Argument : std::uint32_t { gradient, key, step, sigma, squares, noise };
  enum Attribute : std::uint32_t { mode, first, elements };
  // The values of `mode`: those of the framework's NoiseMode.
  enum Mode : int { bf16_round = 1, bf16_stochastic, relative, norm, anneal };
  static void check(const sdk::CallChecks& call) {
    call.dtype(gradient, {MLG_F32});
    call.i32(key, {4});
    call.i32(step, {1});
    call.f32(sigma, {1});
    call.dtype(squares, {MLG_F64});
    call.shape(squares, {1});
    call.like(noise, gradient);
    call.attribute_range(mode, bf16_round, anneal);
    call.attribute_range(first, 0, 0x1p32 - 1);
    call.attribute_range(elements, 1, 0x1p32);
    if (static_cast<int>(call.attribute(mode)) == norm && !call.has(squares)) {
      throw std::runtime_error("kernel gradient_noise: mode norm needs the argument squares");
    }
  }
};

}  // namespace mulligan::shapes
