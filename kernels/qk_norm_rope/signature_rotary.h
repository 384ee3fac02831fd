// What kernels that norm and rotate heads have in common: tables, gain, attributes.
#pragma once

#include <mulligan/call_checks.hpp>

namespace mulligan::shapes {

struct Rotary {
  // Argument 0 holds the heads.
  enum Table : std::uint32_t { cos = 1, sin, gain };
  enum Attribute : std::uint32_t { rope_dims, row_length, norm, eps };
  static constexpr std::int64_t max_head_width = 1024;

  // Heads have `head_width` elements; the first `gained` heads of a token have a gain.
  static void check_rotation(const sdk::CallChecks& call, std::int64_t head_width, std::int64_t gained) {
    call.require(head_width <= max_head_width, 0, "must have heads of at most 1024 elements");
    call.dtype(cos, {MLG_F32});
    call.like(sin, cos);
    call.attribute_range(rope_dims, 0, static_cast<double>(head_width));
    call.attribute_range(eps, 0.0, 1.0);
    const auto rotated = static_cast<std::int64_t>(call.attribute(rope_dims));
    if (rotated > 0) {
      call.require(rotated % 2 == 0, 0, "needs an even attribute rope_dims");
      call.shape(cos, {-1, rotated / 2});
      call.attribute_range(row_length, 1, static_cast<double>(call.dim(cos, 0)));
    }
    call.f32(gain, {gained});
  }
};

}  // namespace mulligan::shapes
