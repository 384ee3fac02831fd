#pragma once

#include <mulligan/call_checks.hpp>

namespace mulligan::shapes {

struct AsymmetricSoftcap {
  enum Argument : std::uint32_t { z, positive, negative };
  static void check_inputs(const sdk::CallChecks& call) {
    call.matrix(z);
    for (const std::uint32_t cap : {positive, negative}) call.f32(cap, {1});
  }
};

struct AsymmetricSoftcapForward : AsymmetricSoftcap {
  static constexpr const char* name = "asymmetric_softcap_fwd";
  static constexpr const char* signature = "in z, in positive, in negative, out y";
  enum Output : std::uint32_t { y = 3 };
  static void check(const sdk::CallChecks& call) {
    check_inputs(call);
    call.like(y, z);
  }
};

struct AsymmetricSoftcapBackward : AsymmetricSoftcap {
  static constexpr const char* name = "asymmetric_softcap_bwd";
  static constexpr const char* signature =
      "in z, in positive, in negative, in dy, inout? dz, inout? dpositive, inout? dnegative; accumulate_dz";
  enum Gradient : std::uint32_t { dy = 3, dz, dpositive, dnegative };
  enum Attribute : std::uint32_t { accumulate_dz };
  static void check(const sdk::CallChecks& call) {
    check_inputs(call);
    call.like(dy, z);
    call.like(dz, z);
    for (const std::uint32_t cap : {dpositive, dnegative}) call.f32(cap, {1});
  }
};

}  // namespace mulligan::shapes
