#pragma once

#include <mulligan/call_checks.hpp>

namespace mulligan::shapes {

struct EmbeddingForward {
  static constexpr const char* name = "embedding_fwd";
  static constexpr const char* signature = "in ids, in table, out x";
  enum Argument : std::uint32_t { ids, table, x };
  static void check(const sdk::CallChecks& call) {
    call.i32(ids, {-1});
    call.matrix(table);
    call.same_dtype(x, table);
    call.shape(x, {call.dim(ids, 0), call.dim(table, 1)});
  }
};

struct EmbeddingBackward {
  static constexpr const char* name = "embedding_bwd";
  static constexpr const char* signature = "in ids, in dx, inout dtable";
  enum Argument : std::uint32_t { ids, dx, dtable };
  static void check(const sdk::CallChecks& call) {
    call.i32(ids, {-1});
    call.matrix(dx);
    call.require(call.dim(dx, 0) == call.dim(ids, 0), dx, "must have one row per id");
    call.f32(dtable, {-1, call.dim(dx, 1)});
  }
};

}  // namespace mulligan::shapes
