// Elementary functions in float, without calls, branches and tables, so that compilers vectorise them.
//
// exp(x) = 2^n exp(r) with n = round(x / ln 2), |r| <= ln(2)/2, and exp(r) = 1 + r + r^2 P(r). P has degree 4
// and was fitted by Chebyshev interpolation (relative error of exp(r) 1.1e-8, below float rounding). Adding 1.5 * 2^23
// leaves n in the low mantissa bits. ln 2 is split into two floats; the first has so few bits that n times it is exact.
#pragma once

#include <bit>
#include <cstdint>

#pragma GCC visibility push(hidden)

namespace mulligan::sdk {

namespace vector_math_detail {

constexpr float kLog2E = 0x1.715476p+0f;
constexpr float kLn2High = 0x1.63p-1f;
constexpr float kLn2Low = -0x1.bd0106p-13f;
constexpr float kRoundingShift = 0x1.8p+23f;

// x = n ln 2 + r. `shifted` carries n in its low mantissa bits.
struct Reduced {
  float shifted;
  float r;
};

inline Reduced reduce(float x) {
  const float shifted = x * kLog2E + kRoundingShift;
  const float n = shifted - kRoundingShift;
  return {shifted, (x - n * kLn2High) - n * kLn2Low};
}

// exp(r) - 1 for |r| <= ln(2)/2, accurate relative to r.
inline float expm1_reduced(float r) {
  float p = 0x1.6d113cp-10f;
  p = p * r + 0x1.120ba2p-7f;
  p = p * r + 0x1.55551ap-5f;
  p = p * r + 0x1.5554dcp-3f;
  p = p * r + 0.5f;
  return r + (r * r) * p;
}

// 2^(n + offset); the exponent must be within a normal float's range.
inline float power_of_two(float shifted, std::uint32_t offset) {
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(shifted) + (127u + offset)) << 23);
}

}  // namespace vector_math_detail

// e^x. Relative error below 1.5e-7; +inf above 88.73, 0 below -86.6 (where e^x < 2.5e-38); NaN gives NaN.
inline float fast_exp(float x) {
  using namespace vector_math_detail;
  constexpr float lowest = -86.6f;
  float clamped = x < lowest ? lowest : x;
  clamped = clamped > 89.0f ? 89.0f : clamped;
  const Reduced reduced = reduce(clamped);
  // Scaled by 2^(n-1) and then by 2, because n may be 128. The last multiplication then overflows to infinity, as it should.
  const float half = (1.0f + expm1_reduced(reduced.r)) * power_of_two(reduced.shifted, ~0u);
  return x < lowest ? 0.0f : half + half;
}

// e^x for x <= 0 (softmax weights relative to the maximum): fast_exp without its upper end.
// NaN gives NaN.
inline float fast_exp_nonpositive(float x) {
  using namespace vector_math_detail;
  constexpr float lowest = -87.0f;
  const Reduced reduced = reduce(x < lowest ? lowest : x);
  const float value = (1.0f + expm1_reduced(reduced.r)) * power_of_two(reduced.shifted, 0u);
  return x < lowest ? 0.0f : value;
}

// 1 / (1 + e^-x). Relative error below 3e-7.
inline float fast_sigmoid(float x) {
  return 1.0f / (1.0f + fast_exp(-x));
}

// tanh(x) and its derivative 1 - tanh(x)^2, the latter as 4 e^2x / (e^2x + 1)^2 so that it keeps its relative
// accuracy up to |x| = 9.1; beyond, it stays at its value there, 5e-8.
struct TanhAndSlope {
  float value;
  float slope;
};
inline TanhAndSlope fast_tanh_and_slope(float x) {
  using namespace vector_math_detail;
  constexpr float saturated = 9.1f;  // tanh rounds to 1 from 9.02 on
  float clamped = x < -saturated ? -saturated : x;
  clamped = clamped > saturated ? saturated : clamped;
  const Reduced reduced = reduce(clamped + clamped);
  const float scale = power_of_two(reduced.shifted, 0u);
  const float expm1 = scale * expm1_reduced(reduced.r) + (scale - 1.0f);
  const float inverse = 1.0f / (expm1 + 2.0f);
  return {expm1 * inverse, 4.0f * (expm1 + 1.0f) * (inverse * inverse)};
}

// tanh(x) - x (1 - tanh(x)^2), by which c tanh(z / c) grows with c at x = z / c, of `at` =
// fast_tanh_and_slope(x). Up to |x| = 1 both terms nearly cancel (2/3 x^3 is left of x), so that there it is
// (sinh(2x) - 2x) / (2 cosh(x)^2), with the series of sinh, whose terms have one sign. Relative error below 1e-6.
inline float softcap_growth(float x, const TanhAndSlope& at) {
  constexpr float saturated = 9.1f;
  const float w = x + x, square = w * w;
  const float series =
      1.0f +
      square * (1.0f / 20) *
          (1.0f +
           square * (1.0f / 42) *
               (1.0f + square * (1.0f / 72) *
                           (1.0f + square * (1.0f / 110) *
                                       (1.0f + square * (1.0f / 156) * (1.0f + square * (1.0f / 210))))));
  const float near = 0.5f * at.slope * (w * square * (1.0f / 6)) * series;
  float clamped = x < -saturated ? -saturated : x;
  clamped = clamped > saturated ? saturated : clamped;
  const float far = at.value - clamped * at.slope;
  return square < 4.0f ? near : far;
}

// tanh(x) = (e^2x - 1) / (e^2x + 1), through expm1 so that small x keep their relative accuracy
// (error below 4e-7).
inline float fast_tanh(float x) {
  using namespace vector_math_detail;
  constexpr float saturated = 9.1f;  // tanh rounds to 1 from 9.02 on
  float clamped = x < -saturated ? -saturated : x;
  clamped = clamped > saturated ? saturated : clamped;
  const Reduced reduced = reduce(clamped + clamped);
  const float scale = power_of_two(reduced.shifted, 0u);
  const float expm1 = scale * expm1_reduced(reduced.r) + (scale - 1.0f);
  return expm1 / (expm1 + 2.0f);
}

}  // namespace mulligan::sdk

#pragma GCC visibility pop
