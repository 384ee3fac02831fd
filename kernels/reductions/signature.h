// What every backend's sums, and the small kernels that go with them, demand of
// their arguments (docs/kernels.md).
#pragma once

#include <mulligan/call_checks.hpp>

namespace mulligan::shapes {

struct Sum {
  static constexpr const char* name = "sum_f64";
  static constexpr const char* signature = "in x, inout total";
  enum Argument : std::uint32_t { x, total };
  static void check(const sdk::CallChecks& call) {
    call.dtype(x, {MLG_F32, MLG_F64});
    call.dtype(total, {MLG_F64});
    call.shape(total, {1});
  }
};

struct SumSquares {
  static constexpr const char* name = "sum_squares_f64";
  static constexpr const char* signature = "in x, inout total";
  enum Argument : std::uint32_t { x, total };
  static void check(const sdk::CallChecks& call) {
    call.compute_dtype(x);
    call.dtype(total, {MLG_F64});
    call.shape(total, {1});
  }
};

struct ClipScale {
  static constexpr const char* name = "clip_scale";
  static constexpr const char* signature = "in total, out norm, out scale; max_norm";
  enum Argument : std::uint32_t { total, norm, scale };
  enum Attribute : std::uint32_t { max_norm };
  static void check(const sdk::CallChecks& call) {
    call.dtype(total, {MLG_F64});
    call.dtype(norm, {MLG_F32});
    call.dtype(scale, {MLG_F32});
    for (const std::uint32_t argument : {total, norm, scale}) call.shape(argument, {1});
    call.attribute_range(max_norm, 0.0, 1e30);
  }
};

struct ScaleBy {
  static constexpr const char* name = "scale_by";
  static constexpr const char* signature = "inout x, in scale";
  enum Argument : std::uint32_t { x, scale };
  static void check(const sdk::CallChecks& call) {
    call.dtype(x, {MLG_F32});
    call.f32(scale, {1});
  }
};

struct LerpInto {
  static constexpr const char* name = "lerp_into";
  static constexpr const char* signature = "inout average, in x; decay";
  enum Argument : std::uint32_t { average, x };
  enum Attribute : std::uint32_t { decay };
  static void check(const sdk::CallChecks& call) {
    call.dtype(average, {MLG_F32});
    call.compute_dtype(x);
    call.same_shape(x, average);
    call.attribute_range(decay, 0.0, 1.0);
  }
};

struct RecordScalar {
  static constexpr const char* name = "record_scalar";
  static constexpr const char* signature = "in x, in index, inout ring";
  enum Argument : std::uint32_t { x, index, ring };
  static void check(const sdk::CallChecks& call) {
    call.dtype(x, {MLG_F32, MLG_F64});
    call.shape(x, {1});
    call.dtype(index, {MLG_I64});
    call.shape(index, {1});
    call.dtype(ring, {MLG_F64});
    call.rank(ring, 1, 1);
    call.require(call.dim(ring, 0) > 0, ring, "must have at least one element");
  }
};

}  // namespace mulligan::shapes
