#pragma once

#include <mulligan/call_checks.hpp>

namespace mulligan::shapes {

struct RationalSoftcapForward {
  static constexpr const char* name = "rational_softcap_fwd";
  static constexpr const char* signature = "in z, out y; cap";
  enum Argument : std::uint32_t { z, y };
  enum Attribute : std::uint32_t { cap };
  static void check(const sdk::CallChecks& call) {
    call.compute_dtype(z);
    call.dtype(y, {MLG_F32});
    call.same_shape(y, z);
    call.attribute_range(cap, 1e-6, 1e6);
  }
};

struct RationalSoftcapBackward {
  static constexpr const char* name = "rational_softcap_bwd";
  static constexpr const char* signature = "in z, in dy, inout dz; cap accumulate_dz";
  enum Argument : std::uint32_t { z, dy, dz };
  enum Attribute : std::uint32_t { cap, accumulate_dz };
  static void check(const sdk::CallChecks& call) {
    call.compute_dtype(z);
    call.dtype(dy, {MLG_F32});
    call.same_shape(dy, z);
    call.like(dz, z);
    call.attribute_range(cap, 1e-6, 1e6);
  }
};

}  // namespace mulligan::shapes
