// round_fp8, element by element:  y = scale E(x / scale), E the nearest number of E4M3 or E5M2, ties to even; what
// is too large becomes the largest one, NaN stays NaN.
//
// Determinism: elements are independent.
#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/round_fp8/signature.h"
#include "plugins/backends/cpu/math/row_math.h"

namespace mulligan::cpu::round_fp8 {
namespace {

// f32 has 23 fraction bits: a sum with 1.5 * 2^(23 + e - bits) has none below 2^(e - bits).
float nearest(float value, const shapes::Fp8Format& format) {
  float size = std::fabs(value);
  size = size > format.largest ? format.largest : size;
  const int exponent = int(std::bit_cast<std::uint32_t>(size) >> 23) - 127;
  const int kept = std::clamp(exponent, format.least_exponent, 16) - format.mantissa_bits;
  const float large = std::bit_cast<float>((std::uint32_t(kept + 23 + 127) << 23) | 0x400000u);
  return std::copysign((size + large) - large, value);
}

struct RoundFp8 : shapes::RoundFp8 {
  template <typename T>
  static void run(const Launch& launch) {
    const shapes::Fp8Format format = shapes::fp8_format(int(launch.attribute(exponent_bits)));
    const auto scale = launch.number(RoundFp8::scale);
    const float inverse = 1.0f / scale;
    const T* from = launch.data<const T>(x);
    write_elements<T>(launch, y, false,
                      [=](std::int64_t i) { return scale * nearest(inverse * float(from[i]), format); });
  }
};

const Register registered = sdk::cpu_kernel<RoundFp8>();

}  // namespace
}  // namespace mulligan::cpu::round_fp8
