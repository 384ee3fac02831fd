// cross_entropy against its formula; padding, aliasing, extreme logits.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/kernels/backend_fixture.h"
#include "tests/kernels/operator_tests.h"
#include "tests/kernels/reference.h"
#include "tests/kernels/row_probe.h"

namespace mulligan::kernel_test::cross_entropy_test {
namespace {

Case entropy_case(std::int64_t tokens, std::int64_t vocabulary, double spread) {
  return {{{"logits", {tokens, vocabulary}, std::nullopt, normal(2, spread)},
           {"targets", {tokens}, MLG_I32, uniform_integer(-1, vocabulary - 1)}},
          {{"token_loss", {tokens}, MLG_F32}, {"lse", {tokens}, MLG_F32}},
          {}};
}

// The maximum of a row rises from one block of it to the next.
Case rising_case() {
  Case c = entropy_case(2, 9000, 1);
  c.inputs[0].generate = [](Random&, std::int64_t index) {
    return static_cast<double>(index % 9000) / 1000.0;
  };
  return c;
}

Operator cross_entropy() {
  Operator op{.forward = "cross_entropy_fwd", .backward = "cross_entropy_bwd"};
  op.backward_names = {{"upstream", "dtoken_loss"}};
  op.free_extents = {"logits"};
  // 1: a vocabulary of one. 4099 and 9000: more than one block of a row.
  op.cases = {
      entropy_case(5, 7, 3),    entropy_case(9, 65, 10),   entropy_case(3, 1, 3), entropy_case(35, 320, 1),
      entropy_case(4, 4099, 5), entropy_case(3, 9000, 20), rising_case()};
  return op.computes([](auto& call) {
    auto& logits = call.in("logits");
    for (std::int64_t t = 0; t < logits.dim(0); ++t) {
      const auto lse = log_sum([&](std::int64_t j) { return logits(t, j); }, logits.dim(1));
      call.out("lse")[t] = lse;
      const std::int64_t target = call.index("targets", t);
      if (target >= 0) call.out("token_loss")[t] = lse - logits(t, target);
    }
  });
}

const RegisterOperator registered{cross_entropy()};

KernelCall backward_call(const Array& logits, const Array& targets, const Array& lse, const Array& upstream) {
  return kernel_call("cross_entropy_bwd", "logits targets lse upstream dlogits",
                     {logits, targets, lse, upstream, {logits.dtype, logits.shape, {}}});
}

TEST(CrossEntropy, GradientMayTakeThePlaceOfTheLogits) {
  for (const mlg_dtype dtype : {MLG_F32, MLG_BF16}) {
    Random random(3);
    Array logits{dtype, {37, 321}, {}}, targets{MLG_I32, {37}, {}}, lse{MLG_F32, {37}, {}}, upstream = lse;
    for (int i = 0; i < 37 * 321; ++i) logits.values.push_back(round_to(dtype, normal()(random, i)));
    for (int t = 0; t < 37; ++t) {
      targets.values.push_back(t % 9 == 0 ? -1 : 8 * t);
      lse.values.push_back(round_to(MLG_F32, 6 + normal(0, 0.1)(random, t)));
      upstream.values.push_back(round_to(MLG_F32, normal()(random, t)));
    }
    KernelCall call = backward_call(logits, targets, lse, upstream);
    const auto apart = backend_with_threads(2).run(call);
    call.aliases = {{"dlogits", "logits"}};
    const auto in_place = backend_with_threads(2).run(call);
    EXPECT_TRUE(apart.bytes.at("dlogits") == in_place.bytes.at("dlogits"));
  }
}

// Saturated, equal and hugely negative logits give the limits of the formula, not overflow.
TEST(CrossEntropy, ExtremeLogits) {
  const Array logits{MLG_F32, {3, 4}, {400, -400, 0, 399, -300, -300, -300, -300, 1e30, -1e30, 5, -5}};
  const Array targets{MLG_I32, {3}, {1, 2, 0}};
  const auto result =
      backend_with_threads(1).run(kernel_call("cross_entropy_fwd", "logits targets token_loss lse",
                                              {logits, targets, {MLG_F32, {3}, {}}, {MLG_F32, {3}, {}}}));
  const double first = 400 + std::log1p(std::exp(-1.0));
  EXPECT_EQ(difference(result.written.at("lse"), {first, -300 + std::log(4.0), 1e30}, 1e-6), "");
  EXPECT_EQ(difference(result.written.at("token_loss"), {first + 400, std::log(4.0), 0.0}, 1e-6), "");
}

TEST(CrossEntropy, TargetsBeyondTheVocabularyAreRefused) {
  const Array logits{MLG_F32, {2, 4}, std::vector<double>(8, 0.0)}, targets{MLG_I32, {2}, {1, 4}};
  const Array per_token{MLG_F32, {2}, {1, 1}};
  EXPECT_TRUE(backend_with_threads(2).refuses_values(kernel_call(
      "cross_entropy_fwd", "logits targets token_loss lse", {logits, targets, per_token, per_token})));
  EXPECT_TRUE(backend_with_threads(2).refuses_values(backward_call(logits, targets, per_token, per_token)));
}

const RegisterRows registered_rows{
    {"cross_entropy_fwd", "logits:TV targets:T/i token_loss:T/f lse:T/f"},
    {"cross_entropy_bwd", "logits:TV targets:T/i lse:T/f upstream:T/f dlogits:TV"}};

}  // namespace
}  // namespace mulligan::kernel_test::cross_entropy_test
