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
  const auto drawn = [&] { return draw(MLG_F32, {tokens, 1, 4}, random); };
  const Array q = drawn(), k = drawn(), v = drawn();
  const auto result = [&](std::int64_t changed) {
    Array other = v;
    if (changed >= 0) other.values[changed * 4] += 1;
    const KernelCall call = kernel_call(
        forward_kernel, "q k v cu_seqlens o lse",
        {q, k, other, {MLG_I32, {3}, {0, first, tokens}}, {MLG_F32, q.shape, {}}, {MLG_F32, {tokens, 1}, {}}},
        {{"softmax_scale", 0.1}});
    return backend_with_threads(1).run(call).written.at("o").values;
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
