#pragma once

#include <mulligan/call_checks.hpp>

namespace mulligan::shapes {

struct RoundFp8 {
  static constexpr const char* name = "round_fp8";
  static constexpr const char* signature = "in x, out y; exponent_bits scale";
  enum Argument : std::uint32_t { x, y };
  enum Attribute : std::uint32_t { exponent_bits, scale };
  static void check(const sdk::CallChecks& call) {
    call.compute_dtype(x);
    call.like(y, x);
    call.attribute_range(exponent_bits, 4, 5);
    call.attribute_range(scale, 1e-18, 1e18);
  }
};

// The numbers of a format (OCP 8-bit floating point, 2023): E4M3 with 4 exponent bits has no infinities.
struct Fp8Format {
  int mantissa_bits;
  int least_exponent;  // of a normal number
  float largest;
};
constexpr Fp8Format fp8_format(int exponent_bits) {
  return exponent_bits == 4 ? Fp8Format{3, -6, 448.0f} : Fp8Format{2, -14, 57344.0f};
}

}  // namespace mulligan::shapes
