// attention against softmax(scale q k^T) v written out. One and three threads take different schedules in the backward pass.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/kernels/attention_problem.h"
#include "tests/kernels/backend_fixture.h"
#include "tests/kernels/operator_tests.h"
#include "tests/kernels/row_probe.h"

namespace mulligan::kernel_test::attention_test {
namespace {

const RegisterOperator registered{attention_operator("attention_fwd", "attention_bwd", true)};

TEST(Attention, BadSegmentsAreRefused) {
  expect_bad_segments_refused("attention_fwd");
}

// A NaN key reaches every query that sees it, in its tile and after it, and no other query.
TEST(Attention, ANotANumberIsNotLeftOut) {
  constexpr std::int64_t tokens = 150, width = 8, bad = 5;
  for (const mlg_dtype dtype : {MLG_F32, MLG_BF16}) {
    const Array rows{dtype, {tokens, 1, width}, std::vector<double>(tokens * width, 0.5)};
    Array keys = rows;
    keys.values[bad * width + 2] = std::numeric_limits<double>::quiet_NaN();
    const KernelResult result = backend_with_threads(1).run(kernel_call(
        "attention_fwd", "q k v cu_seqlens o lse",
        {rows, keys, rows, {MLG_I32, {2}, {0, tokens}}, {dtype, rows.shape, {}}, {MLG_F32, {tokens, 1}, {}}},
        {{"softmax_scale", 0.25}}));
    for (std::int64_t t = 0; t < tokens; ++t) {
      EXPECT_EQ(std::isnan(result.written.at("lse").values[static_cast<std::size_t>(t)]), t >= bad) << t;
      for (std::int64_t j = 0; j < width; ++j)
        EXPECT_EQ(std::isnan(result.written.at("o").values[static_cast<std::size_t>(t * width + j)]),
                  t >= bad)
            << t;
    }
  }
}

// Sequences of 59: some begin inside a block of queries whose tiles of keys follow another sequence's.
const RegisterRows registered_rows{
    {"attention_fwd", "q:TKh k:T1h v:T1h cu_seqlens:C/i o:TKh lse:TK/f", "softmax_scale=0.25", 59},
    {"attention_fwd", "q:THh k:TKh v:TKh cu_seqlens:C/i o:THh lse:TH/f", "softmax_scale=0.25"},
    {"attention_bwd", "q:TKh k:T1h v:T1h cu_seqlens:C/i o:TKh lse:TK/f do:TKh dq:TKh dk:T1h dv:T1h",
     "softmax_scale=0.25", 59}};

}  // namespace
}  // namespace mulligan::kernel_test::attention_test
