// What a look at attention measures, on rows whose answers are known.
#include <gtest/gtest.h>

#include <cmath>

#include "lab/attention/attention_rows.h"

namespace mulligan::doctor::doctor_attention_test {
namespace {

// One head of width 2; keys 0 and 1 are the same, key 2 is another; two segments: three tokens and one.
AttentionCallValues small_call() {
  AttentionCallValues c;
  c.heads = c.kv_heads = 1;
  c.width = 2;
  c.q = {1, 0, 1, 0, 1, 0, 3, 0};
  c.k = {2, 0, 2, 0, -1, 0, 5, 0};
  c.v = {-1, 4, -3, 4, 7, 4, 2, 2};
  c.boundaries = {0, 3, 4};
  c.dtype = MLG_BF16;
  const double small = std::exp(-3.0), sum = 2 + small;
  c.o = {-1, 4, -2, 4, (-4 + 7 * small) / sum, 4, 2, 2};
  return c;
}

TEST(AttentionRows, ExactResultsHaveNoError) {
  AttentionCallValues call = small_call();
  call.gradient = {1, 2, 3, 4, 5, 6, 7, 8};
  const AttentionRowsSeen seen = look_at_rows(call, 100);
  EXPECT_EQ(seen.rows, 4);
  EXPECT_DOUBLE_EQ(seen.record.largest_logit, 15);
  EXPECT_DOUBLE_EQ(seen.record.repeated_rows, 0.5);  // tokens 1 and 2
  EXPECT_NEAR(seen.record.error_ulp, 0, 1e-12);
  EXPECT_NEAR(*seen.record.delta_error, 0, 1e-12);
  const double third = 5 * call.o[4] + 24;
  EXPECT_NEAR(*seen.record.delta_norm, std::sqrt(49 + 100 + third * third + 900), 1e-9);
}

// Half a unit in the last place of every element, of the size of what is added up: sum of p |v|.
TEST(AttentionRows, ErrorsAreSignedAndInUnitsOfTheLastPlace) {
  for (const DType dtype : {MLG_BF16, MLG_F32}) {
    AttentionCallValues call = small_call();
    call.dtype = dtype;
    call.gradient.assign(8, 1.0);
    const double digits = dtype == MLG_BF16 ? 7 : 23, small = std::exp(-3.0);
    const double sizes[] = {1, 4, 2, 4, (4 + 7 * small) / (2 + small), 4, 2, 2};
    double squares = 0, both = 0;
    for (int i = 0; i < 8; ++i) {
      const double error = -0.5 * std::exp2(std::floor(std::log2(sizes[i])) - digits);
      call.o[static_cast<std::size_t>(i)] += error;
      both += error;
      if (i % 2 == 1) squares += both * both, both = 0;
    }
    const AttentionRowsSeen seen = look_at_rows(call, 100);
    EXPECT_NEAR(seen.record.error_ulp, -0.5, 1e-7);
    EXPECT_NEAR(seen.record.error_standard_error_ulp, 0, 1e-6);
    EXPECT_NEAR(*seen.record.delta_error, std::sqrt(squares), 1e-9);
  }
}

TEST(AttentionRows, LooksAtSomeRowsAndSharesKeys) {
  AttentionCallValues call = small_call();
  EXPECT_EQ(look_at_rows(call, 2).rows, 2);  // tokens 0 and 2
  EXPECT_DOUBLE_EQ(look_at_rows(call, 2).record.repeated_rows, 0.5);
  EXPECT_FALSE(look_at_rows(call, 2).record.delta_norm.has_value());
  // The same keys and values for two heads: token for token the same rows twice.
  AttentionCallValues shared = call;
  shared.heads = 2;
  shared.q.clear();
  shared.o.clear();
  for (std::size_t t = 0; t < 4; ++t) {
    for (int head = 0; head < 2; ++head) {
      shared.q.insert(shared.q.end(), {call.q[2 * t], call.q[2 * t + 1]});
      shared.o.insert(shared.o.end(), {call.o[2 * t], call.o[2 * t + 1]});
    }
  }
  const AttentionRowsSeen seen = look_at_rows(shared, 100);
  EXPECT_EQ(seen.rows, 8);
  EXPECT_DOUBLE_EQ(seen.record.repeated_rows, 0.5);
  EXPECT_NEAR(seen.record.error_ulp, 0, 1e-12);
}

// A result that is not a number is not a result without an error.
TEST(AttentionRows, NumbersThatAreNoneShow) {
  AttentionCallValues call = small_call();
  call.o[3] = std::nan("");
  EXPECT_TRUE(std::isnan(look_at_rows(call, 100).record.error_ulp));
  call = small_call();
  call.q[0] = std::nan("");
  EXPECT_TRUE(std::isnan(look_at_rows(call, 100).record.largest_logit));
}

TEST(SpectralNorm, OfMatricesThatAreKnown) {
  const float diagonal[] = {3, 0, 0, 0, -7, 0};
  EXPECT_NEAR(spectral_norm(diagonal, 2, 3), 7, 1e-4);
  const float outer[] = {2, 4, 6, 1, 2, 3};  // (2, 1) (1, 2, 3)^T
  EXPECT_NEAR(spectral_norm(outer, 2, 3), std::sqrt(5.0 * 14), 1e-4);
  const float zeros[] = {0, 0};
  EXPECT_EQ(spectral_norm(zeros, 1, 2), 0);
  const float none[] = {1, std::nanf("")};
  EXPECT_TRUE(std::isnan(spectral_norm(none, 1, 2)));
}

}  // namespace
}  // namespace mulligan::doctor::doctor_attention_test
