#pragma once

#include <mulligan/call_checks.hpp>

namespace mulligan::shapes {

struct SoftcapForward {
  static constexpr const char* name = "softcap_fwd";
  static constexpr const char* signature = "in z, out y; cap";
  enum Argument : std::uint32_t { z, y };
  enum Attribute : std::uint32_t { cap };
  static void check(const sdk::CallChecks& call) {
    call.compute_dtype(z);
    call.like(y, z);
    call.attribute_range(cap, 1e-6, 1e6);
  }
};

struct SoftcapBackward {
  static constexpr const char* name = "softcap_bwd";
  static constexpr const char* signature = "in z, in dy, inout dz; cap accumulate_dz";
  enum Argument : std::uint32_t { z, dy, dz };
  enum Attribute : std::uint32_t { cap, accumulate_dz };
  static void check(const sdk::CallChecks& call) {
    call.compute_dtype(z);
    call.like(dy, z);
    call.like(dz, z);
    call.attribute_range(cap, 1e-6, 1e6);
  }
};

}  // namespace mulligan::shapes
