#pragma once

#include <mulligan/call_checks.hpp>

namespace mulligan::shapes {

struct Axpby {
  static constexpr const char* name = "axpby";
  static constexpr const char* signature = "in a, in? b, inout y; alpha beta accumulate_y";
  enum Argument : std::uint32_t { a, b, y };
  enum Attribute : std::uint32_t { alpha, beta, accumulate_y };
  static void check(const sdk::CallChecks& call) {
    for (const std::uint32_t argument : {a, b, y}) call.dtype(argument, {MLG_F32, narrow_dtype(call)});
    call.same_shape(b, a);
    call.same_shape(y, a);
  }
  // What arguments may be other than f32: f16 where one is, else bf16.
  static mlg_dtype narrow_dtype(const sdk::Launch& call) {
    for (const std::uint32_t argument : {a, b, y}) {
      if (call.dtype(argument) == MLG_F16) return MLG_F16;
    }
    return MLG_BF16;
  }
  // Calls body.template operator()<A, B, Y>() with the types of the arguments. A type that is not f32 is Narrow; B is A
  // if b is absent.
  template <typename Narrow, typename Body>
  static void dispatch(const sdk::Launch& call, Body&& body) {
    const auto pick = [&](std::uint32_t argument, auto&& next) {
      return call.dtype(argument) == MLG_F32 ? next.template operator()<float>()
                                             : next.template operator()<Narrow>();
    };
    pick(a, [&]<typename A>() {
      pick(call.has(b) ? b : a,
           [&]<typename B>() { pick(y, [&]<typename Y>() { body.template operator()<A, B, Y>(); }); });
    });
  }
};

}  // namespace mulligan::shapes
