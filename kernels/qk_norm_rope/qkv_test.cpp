// qkv_split_norm_rope and concat_rows against their formulas (docs/kernels.md).
#include <gtest/gtest.h>

#include "tests/kernels/backend_fixture.h"
#include "tests/kernels/norm_row.h"
#include "tests/kernels/operator_tests.h"
#include "tests/kernels/row_probe.h"

namespace mulligan::kernel_test::qkv_test {
namespace {

struct Heads {
  std::int64_t query, kv, width, padding;  // padding: elements of a row after the gates
};

Case split_case(std::int64_t tokens, const Heads& heads, std::int64_t rope_dims, std::int64_t row_length,
                double norm) {
  const Shape table{row_length + 1, rope_dims / 2};  // tables may be longer than a row
  const Shape keys{tokens, heads.kv, heads.width};
  const std::int64_t width = (heads.query + 2 * heads.kv) * heads.width + heads.query + heads.padding;
  return {
      {{"packed", {tokens, width}},
       {"cos", table, MLG_F32},
       {"sin", table, MLG_F32},
       {"gain", {heads.query}, MLG_F32, normal(3, 1)}},
      {{"q", {tokens, heads.query, heads.width}}, {"k", keys}, {"v", keys}, {"gate", {tokens, heads.query}}},
      rotary_attributes(rope_dims, row_length, norm)};
}

Operator qkv_split_norm_rope() {
  Operator op{.forward = "qkv_split_norm_rope_fwd", .backward = "qkv_split_norm_rope_bwd"};
  op.cases = {
      split_case(5, {2, 1, 6, 0}, 4, 4, 1),      // nothing is a multiple of an access
      split_case(4, {3, 3, 8, 5}, 8, 3, 0),      // as many key heads as query heads, no norm, all rotated
      split_case(3, {4, 2, 5, 4}, 0, 3, 1),      // no rotation
      split_case(34, {8, 4, 64, 0}, 16, 17, 1),  // the record's heads
      split_case(9, {4, 2, 32, 4}, 32, 9, 1),    // gates and padding share an access
      split_case(3, {2, 1, 128, 6}, 128, 2, 1),  // wide heads
      split_case(1100, {2, 1, 4, 2}, 2, 250, 1)  // several pieces of tokens
  };
  op.backward_names = {{"dv_xsa", "dv"}};
  op.free_extents = {"packed"};
  return op.computes([](auto& call) {
    using S = typename std::decay_t<decltype(call)>::Scalar;
    auto &packed = call.in("packed"), &q = call.out("q"), &k = call.out("k"), &v = call.out("v");
    const std::int64_t heads = q.dim(1), kv_heads = k.dim(1), width = q.dim(2);
    for (std::int64_t t = 0; t < q.dim(0); ++t) {
      // Writes the head at `from`, normed and rotated, times gain.
      const auto turn = [&](std::int64_t from, S gain, auto& out, std::int64_t head) {
        turn_head(
            call, [&](std::int64_t j) { return packed(t, from + j); }, gain, out, t, head);
      };
      for (std::int64_t head = 0; head < heads; ++head)
        turn(head * width, call.has("gain") ? call.in("gain")[head] : S(1.0), q, head);
      for (std::int64_t head = 0; head < kv_heads; ++head) {
        turn((heads + head) * width, S(1.0), k, head);
        for (std::int64_t j = 0; j < width; ++j)
          v(t, head, j) = packed(t, (heads + kv_heads + head) * width + j);
      }
      for (std::int64_t head = 0; head < heads; ++head)
        call.out("gate")(t, head) = packed(t, (heads + 2 * kv_heads) * width + head);
    }
  });
}

// `last`: columns of the last matrix, 0: as many as the others have.
Case concat_case(std::vector<std::int64_t> rows, std::int64_t width, std::int64_t gap, std::int64_t after,
                 std::int64_t last = 0) {
  const char* names[] = {"a", "b", "c", "d"};
  const char* firsts[] = {"", "row_b", "row_c", "row_d"};
  Case c;
  std::int64_t end = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    if (i > 0) c.attributes[firsts[i]] = static_cast<double>(end);
    c.inputs.push_back({names[i], {rows[i], i == 3 && last > 0 ? last : width}});
    end += rows[i] + (i == 1 ? gap : 0);
  }
  c.outputs = {{"y", {end + after, width}}};
  return c;
}

Operator concat_rows() {
  Operator op{.forward = "concat_rows_fwd", .backward = "concat_rows_bwd"};
  op.cases = {concat_case({3, 2, 1, 4}, 5, 0, 0), concat_case({2, 1, 3, 1}, 8, 2, 3),
              concat_case({70, 40, 40, 6}, 64, 0, 4), concat_case({3, 2, 1, 4}, 7, 1, 2, 3),
              concat_case({64, 32, 32, 8}, 64, 0, 0, 12)};
  op.free_extents = {"y"};  // a matrix may have fewer columns
  op.f32_gradients = {"da", "db", "dc", "dd"};
  return op.computes([](auto& call) {
    std::int64_t row = 0;
    for (const char* name : {"a", "b", "c", "d"}) {
      if (name[0] != 'a') row = static_cast<std::int64_t>(call.attribute(std::string("row_") + name));
      if (!call.has(name)) continue;
      auto& part = call.in(name);
      for (std::int64_t i = 0; i < part.dim(0); ++i)
        for (std::int64_t j = 0; j < part.dim(1); ++j) call.out("y")(row + i, j) = part(i, j);
    }
  });
}

const RegisterOperator registered{qkv_split_norm_rope(), concat_rows()};

// Matrices that overlap, or do not fit, are refused, by name.
TEST(ConcatRows, RowsThatOverlapOrDoNotFitAreRefused) {
  const auto refusal = [](double row_b, std::int64_t rows, const Array& b = {MLG_F32, {2, 3}, {}}) {
    const Array a{MLG_F32, {2, 3}, {}}, y{MLG_F32, {rows, 3}, {}};
    return backend_with_threads(1).refusal(
        kernel_call("concat_rows_fwd", "a b y", {a, b, y}, {{"row_b", row_b}, {"row_c", 0}, {"row_d", 0}}));
  };
  EXPECT_EQ(refusal(2, 4), "");
  EXPECT_NE(refusal(1, 4).find("argument b must begin after"), std::string::npos) << refusal(1, 4);
  EXPECT_NE(refusal(3, 4).find("argument b must end within the 4 rows"), std::string::npos) << refusal(3, 4);
  const std::string wider = refusal(2, 4, {MLG_F32, {1, 4}, {}});
  EXPECT_NE(wider.find("argument b must have at most the 3 columns"), std::string::npos) << wider;
}

const RegisterRows registered_rows{{"concat_rows_fwd", "a:md b:Fd y:Rd", "row_b=9"},
                                   {"concat_rows_bwd", "dy:Rd da:md/f db:Fd/f", "row_b=9"}};

}  // namespace
}  // namespace mulligan::kernel_test::qkv_test
