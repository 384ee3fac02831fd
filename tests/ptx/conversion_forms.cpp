// cvt: between integers, floating point and the 16-bit formats. Conversions to integers clamp; NaN becomes 0.
#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>
#include <type_traits>

#include "tests/ptx/lanes.h"

namespace mulligan::ptx {
namespace {

// `value` is integral.
template <typename To, typename From>
To clamped(From value) {
  constexpr From low = static_cast<From>(std::numeric_limits<To>::min()),
                 above = static_cast<From>(2) *
                         static_cast<From>(u64{1} << (std::numeric_limits<To>::digits - 1));
  if (value != value) return 0;
  if (value < low) return std::numeric_limits<To>::min();
  return value >= above ? std::numeric_limits<To>::max() : static_cast<To>(value);
}

template <typename To, typename From>
void add_to_integer(Forms& forms) {
  const std::string types = "." + type_name<To>() + "." + type_name<From>();
  add(forms, "cvt.rzi" + types, [](From a) { return clamped<To>(std::trunc(a)); });
  add(forms, "cvt.rni" + types, [](From a) { return clamped<To>(std::nearbyint(a)); });
  add(forms, "cvt.rmi" + types, [](From a) { return clamped<To>(std::floor(a)); });
  add(forms, "cvt.rpi" + types, [](From a) { return clamped<To>(std::ceil(a)); });
}

// The CPU rounds to nearest even when it converts.
template <typename To, typename From>
void add_from_integer(Forms& forms) {
  add(forms, "cvt.rn." + type_name<To>() + "." + type_name<From>(),
      [](From a) { return static_cast<To>(a); });
}

template <typename To, typename From>
void add_between_integers(Forms& forms) {
  add(forms, "cvt." + type_name<To>() + "." + type_name<From>(), [](From a) { return static_cast<To>(a); });
}
template <typename To>
void add_to_integers_of(Forms& forms) {
  each<u16, s16, u32, s32, u64, s64>([&]<typename From>() { add_between_integers<To, From>(forms); });
  // Of the low byte of a register.
  const std::string to = "cvt." + type_name<To>();
  add(forms, to + ".u8", [](u16 a) { return static_cast<To>(static_cast<std::uint8_t>(a)); });
  add(forms, to + ".s8", [](u16 a) { return static_cast<To>(static_cast<std::int8_t>(a)); });
}

// The 16 high bits of the nearest bf16, to even.
u16 bf16_of(float value) {
  const u32 word = std::bit_cast<u32>(value);
  if (value != value) return 0x7FFF;
  return static_cast<u16>((word + 0x7FFFu + (word >> 16 & 1)) >> 16);
}
// Towards zero: a number too large for bf16 does not exist, as both have f32's exponents.
u16 bf16_towards_zero(float value) {
  return value != value ? u16{0x7FFF} : static_cast<u16>(std::bit_cast<u32>(value) >> 16);
}

// The nearest half, to even: the significand is cut at its eleventh digit, or at 2^-24 for subnormal results.
u16 half_of(float value) {
  if (value != value) return 0x7FFF;
  const u16 sign = std::signbit(value) ? 0x8000 : 0;
  const float size = std::abs(value);
  if (size >= 65520.0f) return sign | 0x7C00;
  if (size < 0x1p-14f) return static_cast<u16>(sign | static_cast<u16>(std::nearbyint(size * 0x1p24f)));
  int exponent = 0;
  const float fraction = std::frexp(size, &exponent);                        // in [0.5, 1)
  const auto digits = static_cast<u32>(std::nearbyint(fraction * 2048.0f));  // 1024 to 2048
  return static_cast<u16>(sign | (static_cast<u32>(exponent + 14) * 1024u + digits - 1024u));
}
float float_of_half(u16 bits) {
  const u32 exponent = bits >> 10 & 31, digits = bits & 1023;
  const float size =
      exponent == 31
          ? (digits ? std::numeric_limits<float>::quiet_NaN() : std::numeric_limits<float>::infinity())
      : exponent == 0 ? std::ldexp(static_cast<float>(digits), -24)
                      : std::ldexp(static_cast<float>(digits + 1024), static_cast<int>(exponent) - 25);
  return tidy(bits & 0x8000 ? -size : size);
}

}  // namespace

void add_conversion_forms(Forms& forms) {
  each<u16, s16, u32, s32, u64, s64>([&]<typename To>() { add_to_integers_of<To>(forms); });
  // Results of 8 bits stand in wider registers.
  add(forms, "cvt.u8.u16", [](u16 a) { return static_cast<u16>(a & 255); });
  add(forms, "cvt.u8.u32", [](u32 a) { return static_cast<u16>(a & 255); });

  each<s32, u32, s64, u64>([&]<typename To>() {
    add_to_integer<To, float>(forms);
    add_to_integer<To, double>(forms);
  });
  each<s16, u16, s32, u32, s64, u64>([&]<typename From>() { add_from_integer<float, From>(forms); });
  each<u16, s32, u32, s64, u64>([&]<typename From>() { add_from_integer<double, From>(forms); });

  add(forms, "cvt.f64.f32", [](float a) { return static_cast<double>(a); });
  // Between 0 and 1; 0 for what is not a number.
  add(forms, "cvt.sat.f32.f32", [](float a) { return a > 0.0f ? (a < 1.0f ? a : 1.0f) : 0.0f; });
  add(forms, "cvt.sat.f64.f64", [](double a) { return a > 0.0 ? (a < 1.0 ? a : 1.0) : 0.0; });
  add(forms, "cvt.rn.f32.f64", [](double a) { return tidy(static_cast<float>(a)); });
  add(forms, "cvt.rni.f32.f32", [](float a) { return tidy(std::nearbyint(a)); });
  add(forms, "cvt.rzi.f32.f32", [](float a) { return tidy(std::trunc(a)); });
  add(forms, "cvt.rmi.f32.f32", [](float a) { return tidy(std::floor(a)); });
  add(forms, "cvt.rpi.f32.f32", [](float a) { return tidy(std::ceil(a)); });
  add(forms, "cvt.rni.f64.f64", [](double a) { return std::nearbyint(a); });
  add(forms, "cvt.rzi.f64.f64", [](double a) { return std::trunc(a); });
  add(forms, "cvt.rmi.f64.f64", [](double a) { return std::floor(a); });

  add(forms, "cvt.rn.bf16.f32", [](float a) { return bf16_of(a); });
  add(forms, "cvt.rz.bf16.f32", [](float a) { return bf16_towards_zero(a); });
  add(forms, "cvt.rn.f16.f32", [](float a) { return half_of(a); });
  add(forms, "cvt.f32.f16", [](u16 a) { return float_of_half(a); });
}

}  // namespace mulligan::ptx
