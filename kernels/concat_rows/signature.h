#pragma once

#include <mulligan/call_checks.hpp>

#include <array>

namespace mulligan::shapes {

struct ConcatRows {
  static constexpr std::uint32_t matrices = 4;
  enum Attribute : std::uint32_t { row_b, row_c, row_d };

  // Rows [begin, end) of y that a matrix takes, none for an absent one, and the columns of it, from 0 on.
  struct Part {
    std::int64_t begin = 0, end = 0, width = 0;
  };
  // Of the arguments first, first + 1, ...
  static std::array<Part, matrices> parts(const sdk::Launch& call, std::uint32_t first) {
    std::array<Part, matrices> result;
    for (std::uint32_t i = 0; i < matrices; ++i) {
      result[i].begin = result[i].end = i == 0 ? 0 : static_cast<std::int64_t>(call.attribute(row_b + i - 1));
      if (!call.has(first + i)) continue;
      result[i].end += call.dim(first + i, 0);
      result[i].width = call.dim(first + i, 1);
    }
    return result;
  }

 protected:
  static void check_parts(const sdk::CallChecks& call, std::uint32_t first, std::uint32_t whole) {
    call.rank(whole, 2, 2);
    const std::int64_t rows = call.dim(whole, 0), width = call.dim(whole, 1);
    for (std::uint32_t i = 0; i + 1 < matrices; ++i)
      call.attribute_range(row_b + i, 0.0, static_cast<double>(rows));
    std::int64_t end = 0;
    for (std::uint32_t i = 0; i < matrices; ++i) {
      call.rank(first + i, 2, 2);
      if (!call.has(first + i)) continue;
      call.require(call.dim(first + i, 1) <= width, first + i,
                   "must have at most the " + std::to_string(width) + " columns of the whole");
      const std::int64_t row = i == 0 ? 0 : static_cast<std::int64_t>(call.attribute(row_b + i - 1));
      call.require(row >= end, first + i, "must begin after the rows of the matrix before it");
      end = row + call.dim(first + i, 0);
      call.require(end <= rows, first + i, "must end within the " + std::to_string(rows) + " rows");
    }
  }
};

struct ConcatRowsForward : ConcatRows {
  static constexpr const char* name = "concat_rows_fwd";
  static constexpr const char* signature = "in a, in? b, in? c, in? d, out y; row_b row_c row_d";
  enum Argument : std::uint32_t { a, b, c, d, y };
  static void check(const sdk::CallChecks& call) {
    call.compute_dtype(a);
    for (const std::uint32_t argument : {b, c, d, y}) call.same_dtype(argument, a);
    check_parts(call, a, y);
  }
};

struct ConcatRowsBackward : ConcatRows {
  static constexpr const char* name = "concat_rows_bwd";
  static constexpr const char* signature =
      "in dy, inout? da, inout? db, inout? dc, inout? dd; row_b row_c row_d";
  enum Argument : std::uint32_t { dy, da, db, dc, dd };
  static void check(const sdk::CallChecks& call) {
    call.compute_dtype(dy);
    for (const std::uint32_t argument : {da, db, dc, dd}) call.dtype(argument, {MLG_F32});
    check_parts(call, da, dy);
  }
};

}  // namespace mulligan::shapes
