// cast, element by element:  y = x in y's dtype; f32, bf16, f16, f64 in any combination, rounded once to
// nearest even.
//
// Determinism: elements are independent.
#include <bit>

#include "kernels/cast/signature.h"
#include "plugins/backends/cpu/math/row_math.h"

namespace mulligan::cpu::cast {
namespace {

using Half = _Float16;

// double to float such that rounding the result to a format of at most 22 bits equals rounding the double
// directly: an inexact result gets an odd last bit ("round to odd"),
// so it is never a tie of the second rounding.
float round_to_odd(double value) {
  const auto nearest = static_cast<float>(value);
  const auto bits = std::bit_cast<std::uint32_t>(nearest);
  const double back = nearest;
  const bool inexact = back != value && value == value && (bits & 1u) == 0;
  const bool too_far_from_zero = (nearest > 0) == (back > value);
  const std::uint32_t step = nearest == 0 ? 1u : (too_far_from_zero ? ~0u : 1u);
  return std::bit_cast<float>(inexact ? bits + step : bits);
}

template <typename To, typename From>
To convert(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (std::is_same_v<From, double> && sizeof(To) == 2) {
    return To(round_to_odd(value));
  } else if constexpr (std::is_same_v<From, double> || std::is_same_v<To, double>) {
    return static_cast<To>(value);
  } else {
    return To(static_cast<float>(value));
  }
}

template <typename Body>
void dispatch_float(mlg_dtype dtype, Body&& body) {
  switch (dtype) {
    case MLG_BF16:
      return body.template operator()<bfloat16>();
    case MLG_F16:
      return body.template operator()<Half>();
    case MLG_F64:
      return body.template operator()<double>();
    default:
      return body.template operator()<float>();
  }
}

struct Cast : shapes::Cast {
  static void run(const Launch& launch) {
    for_elements(launch, launch.size(Cast::x), [&](std::int64_t begin, std::int64_t end) {
      dispatch_float(launch.dtype(Cast::x), [&]<typename From>() {
        dispatch_float(launch.dtype(Cast::y), [&]<typename To>() {
          const From* x = launch.data<const From>(Cast::x);
          To* y = launch.data<To>(Cast::y);
#pragma GCC ivdep
          for (std::int64_t i = begin; i < end; ++i) y[i] = convert<To>(x[i]);
        });
      });
    });
  }
};

const Register registered = sdk::cpu_kernel<Cast>();

}  // namespace
}  // namespace mulligan::cpu::cast
