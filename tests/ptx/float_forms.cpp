// Floating point, in the rounding that each form states. Operations that a GPU approximates are computed in double and rounded to
// nearest. So they are within the bound that the PTX manual gives for each.
#include <bit>
#include <cfloat>
#include <cmath>

#include "tests/ptx/lanes.h"

namespace mulligan::ptx {
namespace {

// Subnormal numbers become zeros of their sign.
float flush(float value) {
  return std::abs(value) < FLT_MIN ? std::copysign(0.0f, value) : value;
}
// -0 lies below +0; of a number and what is none, the number.
template <typename T>
T least(T a, T b) {
  if (a != a) return b;
  if (b != b) return a;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}
template <typename T>
T greatest(T a, T b) {
  if (a != a) return b;
  if (b != b) return a;
  if (a == b) return std::signbit(a) ? b : a;
  return a < b ? b : a;
}

// a b + c, rounded down. In double, a b of two floats is exact, and the sum splits into its rounded value and the rest. So the
// sign of what nearest rounding left out is known.
float fma_down(float a, float b, float c) {
  const float nearest = std::fma(a, b, c);
  const double product = static_cast<double>(a) * b, high = product + c;
  if (!std::isfinite(high)) return tidy(nearest);
  const double part = high - product, low = (product - (high - part)) + (c - part);
  if (high == 0 && low == 0)
    return std::signbit(product) == std::signbit(static_cast<double>(c)) ? nearest : -0.0f;
  return high - static_cast<double>(nearest) + low < 0 ? std::nextafter(nearest, -INFINITY) : nearest;
}

// Ordered comparisons are false, unordered ones (eq"u") true, where one of both is not a number. `bool`: the
// result joined with a predicate.
template <typename T, typename Compare>
void add_comparison(Forms& forms, const std::string& name, const std::string& type, Compare) {
  add(forms, "setp." + name + "." + type, [](T a, T b) { return Compare{}(a, b); });
  add(forms, "setp." + name + ".and." + type, [](T a, T b, bool c) { return Compare{}(a, b) && c; });
  add(forms, "setp." + name + ".or." + type, [](T a, T b, bool c) { return Compare{}(a, b) || c; });
}

template <typename T>
void add_comparisons(Forms& forms, const std::string& type) {
  add_comparison<T>(forms, "eq", type, [](T a, T b) { return a == b; });
  add_comparison<T>(forms, "ne", type, [](T a, T b) { return a < b || a > b; });
  add_comparison<T>(forms, "lt", type, [](T a, T b) { return a < b; });
  add_comparison<T>(forms, "le", type, [](T a, T b) { return a <= b; });
  add_comparison<T>(forms, "gt", type, [](T a, T b) { return a > b; });
  add_comparison<T>(forms, "ge", type, [](T a, T b) { return a >= b; });
  add_comparison<T>(forms, "equ", type, [](T a, T b) { return !(a < b || a > b); });
  add_comparison<T>(forms, "neu", type, [](T a, T b) { return !(a == b); });
  add_comparison<T>(forms, "ltu", type, [](T a, T b) { return !(a >= b); });
  add_comparison<T>(forms, "leu", type, [](T a, T b) { return !(a > b); });
  add_comparison<T>(forms, "gtu", type, [](T a, T b) { return !(a <= b); });
  add_comparison<T>(forms, "geu", type, [](T a, T b) { return !(a < b); });
  add_comparison<T>(forms, "num", type, [](T a, T b) { return a == a && b == b; });
  add_comparison<T>(forms, "nan", type, [](T a, T b) { return a != a || b != b; });
}

// Each without and with .ftz, which flushes what comes in and what goes out.
template <typename F>
void add_approximation(Forms& forms, const std::string& name, F) {
  add(forms, name + ".f32", [](float a) { return tidy(static_cast<float>(F{}(static_cast<double>(a)))); });
  add(forms, name + ".ftz.f32",
      [](float a) { return flush(tidy(static_cast<float>(F{}(static_cast<double>(flush(a)))))); });
}

}  // namespace

void add_float_forms(Forms& forms) {
  for (const char* rounding : {"", ".rn"}) {
    const std::string r = rounding;
    add(forms, "add" + r + ".f32", [](float a, float b) { return tidy(a + b); });
    add(forms, "sub" + r + ".f32", [](float a, float b) { return tidy(a - b); });
    add(forms, "mul" + r + ".f32", [](float a, float b) { return tidy(a * b); });
    add(forms, "mul" + r + ".ftz.f32", [](float a, float b) { return flush(tidy(flush(a) * flush(b))); });
    add(forms, "add" + r + ".ftz.f32", [](float a, float b) { return flush(tidy(flush(a) + flush(b))); });
    add(forms, "add" + r + ".f64", [](double a, double b) { return a + b; });
    add(forms, "sub" + r + ".f64", [](double a, double b) { return a - b; });
    add(forms, "mul" + r + ".f64", [](double a, double b) { return a * b; });
  }
  add(forms, "fma.rn.f32", [](float a, float b, float c) { return tidy(std::fma(a, b, c)); });
  add(forms, "fma.rm.f32", [](float a, float b, float c) { return fma_down(a, b, c); });
  add(forms, "fma.rn.ftz.f32",
      [](float a, float b, float c) { return flush(tidy(std::fma(flush(a), flush(b), flush(c)))); });
  add(forms, "fma.rn.f64", [](double a, double b, double c) { return std::fma(a, b, c); });
  add(forms, "div.rn.f32", [](float a, float b) { return tidy(a / b); });
  add(forms, "div.rn.f64", [](double a, double b) { return a / b; });
  add(forms, "sqrt.rn.f32", [](float a) { return tidy(std::sqrt(a)); });
  add(forms, "sqrt.rn.f64", [](double a) { return std::sqrt(a); });
  add(forms, "rcp.rn.f32", [](float a) { return tidy(1.0f / a); });
  add(forms, "rcp.rn.f64", [](double a) { return 1.0 / a; });
  add(forms, "neg.f32", [](float a) { return tidy(-a); });
  add(forms, "abs.f32", [](float a) { return tidy(std::abs(a)); });
  add(forms, "neg.f64", [](double a) { return -a; });
  add(forms, "abs.f64", [](double a) { return std::abs(a); });
  add(forms, "min.f32", [](float a, float b) { return tidy(least(a, b)); });
  add(forms, "max.f32", [](float a, float b) { return tidy(greatest(a, b)); });
  add(forms, "min.f64", [](double a, double b) { return least(a, b); });
  add(forms, "max.f64", [](double a, double b) { return greatest(a, b); });
  add(forms, "copysign.f32", [](float sign, float a) { return std::copysign(a, sign); });
  add_comparisons<float>(forms, "f32");
  add_comparisons<double>(forms, "f64");

  // At most 2 ulp, 2^-126 <= |b| <= 2^126.
  add(forms, "div.full.f32", [](float a, float b) { return tidy(a / b); });
  add(forms, "div.approx.f32", [](float a, float b) { return tidy(a / b); });
  add(forms, "div.approx.ftz.f32", [](float a, float b) { return flush(tidy(flush(a) / flush(b))); });
  // At most 2 ulp + 2^-22 relative.
  add_approximation(forms, "ex2.approx", [](double a) { return std::exp2(a); });
  // At most 2^-22 absolute for arguments of 0.5 to 2, relative beyond.
  add_approximation(forms, "lg2.approx", [](double a) { return std::log2(a); });
  // At most 1 ulp.
  add_approximation(forms, "rcp.approx", [](double a) { return 1.0 / a; });
  // Relative error of at most 2^-23 (sqrt) and 2^-22.9 (rsqrt).
  add_approximation(forms, "sqrt.approx", [](double a) { return std::sqrt(a); });
  add_approximation(forms, "rsqrt.approx", [](double a) { return 1.0 / std::sqrt(a); });
  // At most 2^-20.9 (sine) and 2^-20.5 (cosine) absolute between -pi and pi.
  add_approximation(forms, "sin.approx", [](double a) { return std::sin(a); });
  add_approximation(forms, "cos.approx", [](double a) { return std::cos(a); });
  // Of the high words alone: the low word of the operand is left out, and that of the result is 0.
  add(forms, "rcp.approx.ftz.f64", [](double a) {
    const double high = std::bit_cast<double>(std::bit_cast<std::uint64_t>(a) & 0xFFFFFFFF00000000u);
    const double one = std::abs(high) < DBL_MIN ? std::copysign(0.0, high) : high;
    const double result =
        std::bit_cast<double>(std::bit_cast<std::uint64_t>(1.0 / one) & 0xFFFFFFFF00000000u);
    return std::abs(result) < DBL_MIN ? std::copysign(0.0, result) : result;
  });
  // Relative error of at most 2^-11.
  add(forms, "tanh.approx.f32",
      [](float a) { return tidy(static_cast<float>(std::tanh(static_cast<double>(a)))); });
}

}  // namespace mulligan::ptx
