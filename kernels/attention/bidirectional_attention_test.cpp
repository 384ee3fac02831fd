// attention_bidirectional against softmax(scale q k^T) v written out, over all keys of each segment.
#include <gtest/gtest.h>

#include "tests/kernels/attention_problem.h"
#include "tests/kernels/backend_fixture.h"
#include "tests/kernels/operator_tests.h"
#include "tests/kernels/row_probe.h"

namespace mulligan::kernel_test::bidirectional_attention_test {
namespace {

constexpr const char* forward_kernel = "attention_bidirectional_fwd";

const RegisterOperator registered{attention_operator(forward_kernel, "attention_bidirectional_bwd", false)};

// A later key of the segment counts, as does an earlier one; one of another segment does not.
TEST(BidirectionalAttention, SeesItsSegmentAndNoOther) {
  constexpr std::int64_t tokens = 150, first = 90;  // segments of more than a tile of either backend
  Random random(5);
  const auto numbers = [&] {
    std::vector<double> drawn;
    for (std::int64_t i = 0; i < tokens * 4; ++i)
      drawn.push_back(static_cast<double>(random() >> 11) * 0x1p-53 - 0.5);
    return drawn;
  };
  const std::vector<double> q = numbers(), k = numbers(), v = numbers();
  const auto result = [&](std::int64_t changed) {
    std::vector<double> other = v;
    if (changed >= 0) other[static_cast<std::size_t>(changed * 4)] += 1;
    const Array rows{MLG_F32, {tokens, 1, 4}, q};
    return backend_with_threads(1)
        .run(kernel_call(forward_kernel, "q k v cu_seqlens o lse",
                         {rows,
                          {MLG_F32, rows.shape, k},
                          {MLG_F32, rows.shape, other},
                          {MLG_I32, {3}, {0, first, tokens}},
                          {MLG_F32, rows.shape, {}},
                          {MLG_F32, {tokens, 1}, {}}},
                         {{"softmax_scale", 0.5}}))
        .written.at("o")
        .values;
  };
  const std::vector<double> before = result(-1);
  for (const std::int64_t changed : {std::int64_t{0}, first - 1, first, tokens - 1}) {
    const std::vector<double> after = result(changed);
    for (std::int64_t t = 0; t < tokens; ++t) {
      const auto at = static_cast<std::size_t>(t * 4);
      EXPECT_EQ(before[at] != after[at], (t < first) == (changed < first)) << t << " of " << changed;
    }
  }
}

TEST(BidirectionalAttention, BadSegmentsAreRefused) {
  expect_bad_segments_refused(forward_kernel);
}

const RegisterRows registered_rows{
    {"attention_bidirectional_fwd", "q:TKh k:T1h v:T1h cu_seqlens:C/i o:TKh lse:TK/f", "softmax_scale=0.25",
     59},
    {"attention_bidirectional_bwd",
     "q:TKh k:T1h v:T1h cu_seqlens:C/i o:TKh lse:TK/f do:TKh dq:TKh dk:T1h dv:T1h", "softmax_scale=0.25",
     59}};

}  // namespace
}  // namespace mulligan::kernel_test::bidirectional_attention_test
