// attention_stable_fwd: attention's result when computed exactly; rounded, an error of no preferred sign.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "tests/kernels/attention_problem.h"
#include "tests/kernels/backend_fixture.h"
#include "tests/kernels/operator_tests.h"
#include "tests/kernels/row_probe.h"

namespace mulligan::kernel_test::stable_attention_test {
namespace {

const std::map<std::string, double> paper = {{"beta", 2}, {"tolerance", 1e-3},     {"min_repeats", 2},
                                             {"cap", 20}, {"round_normalizer", 0}, {"round_sums", 0}};

std::map<std::string, double> rule(std::map<std::string, double> changed) {
  changed.insert(paper.begin(), paper.end());
  return changed;
}

// Odd shapes of attention_test.cpp, and rows with equal keys: every rule computes softmax(scale q k^T) v.
Operator stable_attention() {
  Operator op{.forward = "attention_stable_fwd"};
  op.cases = {attention_case({1, 2, 63, 64, 65}, {2, 1, 8}, rule({})),
              attention_case({67, 2}, {2, 1, 128}, rule({{"min_repeats", 1}, {"beta", 8}}), 0.3)};
  for (const auto& attributes :
       {rule({}), rule({{"min_repeats", 1}, {"cap", 0.5}}), rule({{"min_repeats", 0}}),
        rule({{"min_repeats", 1}, {"round_normalizer", 1}}), rule({{"round_sums", 1}})}) {
    op.cases.push_back(attention_case({0, 17, 0, 33, 5}, {3, 1, 33}, attributes));
  }
  op.free_extents = {"cu_seqlens"};
  op.dtypes = {MLG_F32, MLG_BF16};
  return op.computes([](auto& call) { attention_formula(call); });
}

const RegisterOperator registered{stable_attention()};

KernelResult forward(const AttentionProblem& problem, mlg_dtype dtype,
                     const std::map<std::string, double>& attributes) {
  return backend_with_threads(3).run(problem.call("attention_stable_fwd", dtype, attributes));
}

struct Error {
  double mean = 0, standard_error = 0;  // in units in the last place of bf16
};

constexpr std::int64_t segments = 800, length = 32, width = 16, warmed = 8;

// Of bf16 results, in the rows that have `warmed` keys before them in their segment.
Error error_of(const AttentionProblem& problem, const std::map<std::string, double>& changed) {
  const KernelResult result = forward(problem, MLG_BF16, rule(changed));
  const std::vector<double> exact = problem.exact_output();
  const std::vector<double>& seen = result.written.at("o").values;
  double sum = 0, squares = 0, count = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    if (problem.place_in_segment(i) < warmed) continue;
    const double e = (seen[i] - exact[i]) / bf16_spacing(exact[i]);
    sum += e;
    squares += e * e;
    ++count;
  }
  const double mean = sum / count;
  return {mean, std::sqrt((squares / count - mean * mean) / count)};
}

// The published defect (arXiv 2510.04212): equal maxima, all values of one sign, sums rounded to bf16.
TEST(StableAttention, RoundedSumsAreBiasedWithoutTheRuleAlone) {
  for (const int repeats : {2, 3}) {
    const AttentionProblem problem =
        repeated_maxima(segments, length, width, repeats, RepeatedValues::one_sign, 1);
    const Error off = error_of(problem, {{"min_repeats", 0}, {"round_sums", 1}}),
                on = error_of(problem, {{"round_sums", 1}});
    EXPECT_GT(std::abs(off.mean), 0.05) << repeats << " maxima, standard error " << off.standard_error;
    EXPECT_LT(std::abs(on.mean), 0.01) << repeats << " maxima, standard error " << on.standard_error;
  }
}

// The backends' own sums in f32, rounded once. The rounded normalizer makes the quotient exact again, and with it the ties.
TEST(StableAttention, ResultsRoundedOnceAreBiasedWithoutTheRuleAlone) {
  const AttentionProblem problem = repeated_maxima(segments, length, width, 2, RepeatedValues::small_rest, 2);
  EXPECT_GT(std::abs(error_of(problem, {{"min_repeats", 0}}).mean), 0.05);
  EXPECT_LT(std::abs(error_of(problem, {}).mean), 0.01);
  EXPECT_GT(std::abs(error_of(problem, {{"round_normalizer", 1}}).mean), 0.05);
}

// A shift beyond the cap is halved. Cut, most rows would have one weight, exp(-cap), and its one error of 0.26 ulp.
TEST(StableAttention, TheCapBringsNoBiasBack) {
  const AttentionProblem problem = repeated_maxima(segments, length, width, 2, RepeatedValues::small_rest, 3);
  const Error on = error_of(problem, {{"beta", 8}});
  EXPECT_LT(std::abs(on.mean), 0.02) << "standard error " << on.standard_error;
}

// Results agree within 1e-6 (rms). 150 additions in f32 bring either up to 3e-6 away from the exact ones.
TEST(StableAttention, InSinglePrecisionItChangesNothing) {
  const AttentionProblem problem = repeated_maxima(9, 150, 33, 3, RepeatedValues::one_sign, 4);
  const KernelResult on = forward(problem, MLG_F32, rule({})),
                     off = backend_with_threads(3).run(problem.call("attention_fwd", MLG_F32, {}));
  const std::vector<double>&with = on.written.at("o").values, &without = off.written.at("o").values;
  const std::vector<double> exact = problem.exact_output();
  double squares = 0, differences = 0, worst_with = 0, worst_without = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    squares += exact[i] * exact[i];
    differences += (with[i] - without[i]) * (with[i] - without[i]);
    worst_with = std::max(worst_with, std::abs(with[i] - exact[i]) / std::abs(exact[i]));
    worst_without = std::max(worst_without, std::abs(without[i] - exact[i]) / std::abs(exact[i]));
  }
  EXPECT_LE(std::sqrt(differences / squares), 1e-6);
  EXPECT_GT(differences, 0.0) << "the rule was not applied at all";
  EXPECT_LE(worst_with, 2 * worst_without);
  EXPECT_LE(worst_without, 5e-6);
  for (std::size_t i = 0; i < on.written.at("lse").values.size(); ++i)
    ASSERT_NEAR(on.written.at("lse").values[i], off.written.at("lse").values[i], 1e-6 * 8)
        << i;  // of up to 8
}

// Maxima up to 1e3 of either sign, where exp would end without the guards.
TEST(StableAttention, LargeMaximaGiveNumbers) {
  for (const double largest : {1e-3, 30.0, 300.0, 1e3, -1e-3, -30.0, -300.0, -1e3}) {
    for (const double beta : {1.0, 2.0, 8.0}) {
      const AttentionProblem problem = repeated_maxima(3, 70, 16, 2, RepeatedValues::one_sign, 5, largest);
      const std::vector<double> exact = problem.exact_output();
      for (const mlg_dtype dtype : {MLG_F32, MLG_BF16}) {
        const KernelResult result = forward(problem, dtype, rule({{"beta", beta}}));
        for (std::size_t i = 0; i < exact.size(); ++i)
          ASSERT_NEAR(result.written.at("o").values[i], exact[i], dtype == MLG_F32 ? 2e-3 : 4e-2)
              << largest << " " << beta << " " << i;
        for (const double lse : result.written.at("lse").values) ASSERT_TRUE(std::isfinite(lse)) << largest;
      }
    }
  }
}

// The backward pass of attention on this kernel's o and lse gives the derivatives of this kernel.
TEST(StableAttention, GradientsAreThoseOfFiniteDifferences) {
  AttentionProblem problem = repeated_maxima(2, 9, 5, 2, RepeatedValues::one_sign, 6);
  const KernelResult at = forward(problem, MLG_F32, rule({}));
  Random random(7);
  std::vector<double> upstream;
  for (std::size_t i = 0; i < problem.q.size(); ++i)
    upstream.push_back(round_to(MLG_F32, normal()(random, 0)));
  const KernelResult gradients = backend_with_threads(1).run(problem.backward_call(MLG_F32, at, upstream));
  const auto objective = [&] {
    const std::vector<double> o = forward(problem, MLG_F32, rule({})).written.at("o").values;
    double sum = 0;
    for (std::size_t i = 0; i < o.size(); ++i) sum += upstream[i] * o[i];
    return sum;
  };
  constexpr double step = 1.0 / 256;
  for (auto& [name, values] : std::map<std::string, std::vector<double>*>{
           {"dq", &problem.q}, {"dk", &problem.k}, {"dv", &problem.v}}) {
    for (std::size_t i = 0; i < values->size(); i += 3) {
      double& x = (*values)[i];
      const double before = x;
      x = before + step;
      const double above = objective();
      x = before - step;
      const double below = objective();
      x = before;
      ASSERT_NEAR(gradients.written.at(name).values[i], (above - below) / (2 * step), 5e-3)
          << name << " " << i;
    }
  }
}

// exp(-cap) is not a number of f16 that could be relied on.
TEST(StableAttention, HalfPrecisionIsRefused) {
  const AttentionProblem problem = repeated_maxima(1, 3, 4, 2, RepeatedValues::one_sign, 8);
  const std::string sentence =
      backend_with_threads(1).refusal(problem.call("attention_stable_fwd", MLG_F16, rule({})));
  EXPECT_NE(sentence.find("must be f32 or bf16"), std::string::npos) << sentence;
}

const RegisterRows registered_rows{
    {"attention_stable_fwd", "q:TKh k:T1h v:T1h cu_seqlens:C/i o:TKh lse:TK/f",
     "softmax_scale=0.25 beta=2 tolerance=1e-3 min_repeats=2 cap=20 round_normalizer=1 round_sums=1", 59,
     false}};

}  // namespace
}  // namespace mulligan::kernel_test::stable_attention_test
