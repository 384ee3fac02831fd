// The kernels of the loss plugin softcap_ce: formula, gradient against finite differences, and what happens
// at the edges.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/kernels/backend_fixture.h"
#include "tests/kernels/operator_tests.h"
#include "tests/kernels/row_probe.h"

namespace mulligan::kernel_test::softcap_ce_test {
namespace {

struct Size {
  std::int64_t rows, vocabulary;
  double cap, spread;  // of the logits; beyond the cap they saturate

  Case with(const std::vector<Operand>& more, const Operand& output) const {
    Case c{.inputs = {{"logits", {rows, vocabulary}, std::nullopt, normal(0, spread)},
                      {"targets", {rows}, MLG_I32, uniform_integer(-1, vocabulary - 1)}},
           .outputs = {{"token_loss", {rows}, MLG_F32}, output},
           .attributes = {{"softcap", cap}}};
    c.inputs.insert(c.inputs.end(), more.begin(), more.end());
    return c;
  }
};

Operator softcap_ce() {
  Operator op{.forward = "softcap_ce_fwd",
              .backward = "softcap_ce_bwd",
              .backward_names = {{"upstream", "dtoken_loss"}},
              .free_extents = {"logits"}};
  // Odd vocabularies around the kernel's block of 1024, one row and one word, no cap at
  // all, saturated logits.
  for (const Size s : {Size{5, 37, 30, 20}, Size{1, 1, 30, 1}, Size{3, 1000, 0, 8}, Size{2, 1025, 15, 40},
                       Size{7, 320, 4, 1}, Size{40, 511, 30, 5}, Size{2, 3000, 200, 150}}) {
    op.cases.push_back(s.with({}, {"lse", {s.rows}, MLG_F32}));
  }
  return op.computes([](auto& call) {
    using std::tanh;
    auto& x = call.in("logits");
    const double cap = call.attribute("softcap");
    for (std::int64_t t = 0; t < x.dim(0); ++t) {
      const std::int64_t target = call.index("targets", t);
      if (target < 0) continue;
      const auto z = [&](std::int64_t v) { return cap > 0 ? cap * tanh(x(t, v) / cap) + cap : x(t, v); };
      call.out("lse")[t] = log_sum(z, x.dim(1));
      call.out("token_loss")[t] = call.out("lse")[t] - z(target);
    }
  });
}

// Both passes in one; a vocabulary beyond what is kept between them (cpu: 8192; cuda: 32 elements of each of
// 512 threads) is streamed twice.
Operator softcap_ce_both() {
  Operator op{.forward = "softcap_ce_fwd_bwd", .free_extents = {"logits"}};
  for (const Size s : {Size{5, 37, 30, 20}, Size{1, 1, 30, 1}, Size{3, 1000, 0, 8}, Size{2, 1025, 15, 40},
                       Size{7, 320, 4, 1}, Size{3, 8192, 30, 9}, Size{2, 8193, 30, 5}, Size{1, 17000, 0, 3},
                       Size{1, 33000, 30, 3}, Size{2, 3000, 200, 150}}) {
    op.cases.push_back(
        s.with({{"upstream", {s.rows}, MLG_F32, normal()}}, {"dlogits", {s.rows, s.vocabulary}}));
  }
  return op.computes([](auto& call) {
    using std::exp, std::tanh;
    auto& x = call.in("logits");
    const double cap = call.attribute("softcap");
    for (std::int64_t t = 0; t < x.dim(0); ++t) {
      const std::int64_t target = call.index("targets", t);
      if (target < 0) continue;
      const auto z = [&](std::int64_t v) { return cap > 0 ? cap * tanh(x(t, v) / cap) : x(t, v); };
      const auto lse = log_sum(z, x.dim(1));
      call.out("token_loss")[t] = lse - z(target);
      for (std::int64_t v = 0; v < x.dim(1); ++v) {
        auto gradient = exp(z(v) - lse) - (v == target ? 1.0 : 0.0);
        if (cap > 0) gradient *= 1.0 - tanh(x(t, v) / cap) * tanh(x(t, v) / cap);
        call.out("dlogits")[t * x.dim(1) + v] = gradient * call.in("upstream")[t];
      }
    }
  });
}
const RegisterOperator registered{softcap_ce(), softcap_ce_both()};

// Of one row. `names`: of the third and the fourth argument.
KernelCall one_row(const std::string& kernel, const std::string& names, mlg_dtype dtype,
                   const std::vector<double>& logits, std::int64_t target, double cap,
                   const std::vector<double>& third, const std::vector<double>& fourth) {
  const auto columns = static_cast<std::int64_t>(logits.size());
  KernelCall call = kernel_call(kernel, "logits targets " + names,
                                {{dtype, {1, columns}, logits},
                                 {MLG_I32, {1}, {static_cast<double>(target)}},
                                 {MLG_F32, {1}, third},
                                 {MLG_F32, {1}, fourth}},
                                {{"softcap", cap}});
  if (kernel != "softcap_ce_fwd") call.arguments["dlogits"] = {dtype, {1, columns}, {}};
  return call;
}

KernelResult forward(const std::vector<double>& logits, std::int64_t target, double cap) {
  return backend_with_threads(1).run(
      one_row("softcap_ce_fwd", "token_loss lse", MLG_F32, logits, target, cap, {}, {}));
}

KernelCall both(mlg_dtype dtype, const std::vector<double>& logits, std::int64_t target, double upstream,
                double cap) {
  return one_row("softcap_ce_fwd_bwd", "upstream token_loss", dtype, logits, target, cap, {upstream}, {});
}

KernelCall backward(mlg_dtype dtype, const std::vector<double>& logits, std::int64_t target, double lse,
                    double cap) {
  return one_row("softcap_ce_bwd", "lse upstream", dtype, logits, target, cap, {lse}, {1.0});
}

// Far beyond the cap, where e^(2x/c) leaves the range of f32: two logits at +c, one at -c.
TEST(SoftcapCe, ExtremeLogitsAreExact) {
  for (const double huge : {500.0, 1e4, 1e30}) {
    const KernelResult result = forward({huge, -huge, huge}, 1, 15.0);
    EXPECT_NEAR(result.written.at("token_loss").values[0], 30.0 + std::log(2.0 + std::exp(-30.0)), 4e-6)
        << huge;
    const KernelResult gradient =
        backend_with_threads(1).run(backward(MLG_F32, {huge, -huge, huge}, 1, 30.0 + std::log(2.0), 15.0));
    for (const double g : gradient.written.at("dlogits").values) EXPECT_NEAR(g, 0.0, 1e-7) << huge;
  }
}

// One float that sums a long row's nearly equal terms one by one is off by up to 1e-5. The bound is that of
// partial sums, which must hold for whatever flags the kernel was compiled with.
TEST(SoftcapCe, LongRowsKeepTheirPrecision) {
  const double others = 50'000;
  for (const float below : {0.1f, 0.3f, 0.7f, 1.1f, 1.3f}) {
    std::vector<double> logits(static_cast<std::size_t>(others) + 1, -below);
    logits[0] = 0.0;
    EXPECT_NEAR(forward(logits, 0, 0.0).written.at("token_loss").values[0],
                std::log1p(others * std::exp(-static_cast<double>(below))), 2e-6)
        << below;
  }
}

// A diverged model must show: NaN in, NaN out, for any position of the NaN and also in a target
// beyond the vocabulary.
TEST(SoftcapCe, NanIsNotSwallowed) {
  for (const double cap : {0.0, 30.0}) {
    for (const int position : {0, 17, 1999}) {
      std::vector<double> logits(2000, 0.5);
      logits[position] = std::numeric_limits<double>::quiet_NaN();
      EXPECT_TRUE(std::isnan(forward(logits, 3, cap).written.at("token_loss").values[0])) << position;
    }
    EXPECT_TRUE(std::isnan(forward({1.0, 2.0}, 2, cap).written.at("token_loss").values[0]));
    const auto gradient = backend_with_threads(1).run(backward(MLG_F32, {1.0, 2.0}, 2, 1.0, cap));
    EXPECT_TRUE(std::isnan(gradient.written.at("dlogits").values[0]));
  }
}

// What both passes in one make of the edges: huge and infinite logits, NaN, targets outside, no upstream. Without a cap,
// logits of minus infinity have probability zero, and large ones do not overflow: nor in the forward pass alone.
TEST(SoftcapCe, BothPassesInOneAtTheEdges) {
  BackendFixture& backend = backend_with_threads(1);
  const double infinity = std::numeric_limits<double>::infinity();
  for (const std::size_t vocabulary : {2500u, 40000u}) {
    std::vector<double> logits(vocabulary, -infinity);  // whole blocks of nothing but -inf, before and after
    logits[1500] = logits[1501] = 300.0;
    EXPECT_NEAR(forward(logits, 1500, 0.0).written.at("token_loss").values[0], std::log(2.0), 1e-6);
    const KernelResult two = backend.run(both(MLG_F32, logits, 1500, 2.0, 0.0));
    EXPECT_NEAR(two.written.at("token_loss").values[0], std::log(2.0), 1e-6);
    EXPECT_NEAR(two.written.at("dlogits").values[1500], -1.0, 1e-6);
    EXPECT_NEAR(two.written.at("dlogits").values[1501], 1.0, 1e-6);
    EXPECT_EQ(two.written.at("dlogits").values[7], 0.0);
    for (const std::int64_t target : {std::int64_t{-1}, static_cast<std::int64_t>(vocabulary)}) {
      const KernelResult outside = backend.run(both(MLG_F32, logits, target, 2.0, 30.0));
      for (const double value :
           {outside.written.at("token_loss").values[0], outside.written.at("dlogits").values[9]}) {
        EXPECT_EQ(std::isnan(value), target > 0) << target;
        EXPECT_EQ(value == 0, target < 0) << target;
      }
    }
    const KernelResult unweighted = backend.run(both(MLG_F32, logits, 1500, 0.0, 0.0));
    EXPECT_NEAR(unweighted.written.at("token_loss").values[0], std::log(2.0), 1e-6);
    for (const double g : unweighted.written.at("dlogits").values) ASSERT_EQ(g, 0.0);
    for (const double cap : {0.0, 30.0}) {
      std::vector<double> broken(vocabulary, 0.5);
      broken[1999] = std::numeric_limits<double>::quiet_NaN();
      const KernelResult nan = backend.run(both(MLG_F32, broken, 3, 1.0, cap));
      EXPECT_TRUE(std::isnan(nan.written.at("token_loss").values[0]));
      EXPECT_TRUE(std::isnan(nan.written.at("dlogits").values[3]));
    }
  }
}

// dlogits may be the memory of the logits; the result is bit for bit that of separate memory.
TEST(SoftcapCe, GradientInPlace) {
  Random random(3);
  for (const mlg_dtype dtype : {MLG_F32, MLG_BF16}) {
    for (const int vocabulary : {1037, 8192, 20011}) {
      std::vector<double> logits;
      for (int i = 0; i < vocabulary; ++i) logits.push_back(round_to(dtype, normal(0, 10)(random, i)));
      for (KernelCall call :
           {backward(dtype, logits, 700, 33.0, 30.0), both(dtype, logits, 700, 0.25, 30.0)}) {
        const KernelResult separate = backend_with_threads(1).run(call);
        call.aliases = {{"dlogits", "logits"}};
        EXPECT_EQ(separate.bytes, backend_with_threads(1).run(call).bytes) << call.kernel << vocabulary;
      }
    }
  }
}

const RegisterRows registered_rows{
    {"softcap_ce_fwd", "logits:TV targets:T/i token_loss:T/f lse:T/f", "softcap=3"},
    {"softcap_ce_bwd", "logits:TV targets:T/i lse:T/f upstream:T/f dlogits:TV", "softcap=3"},
    {"softcap_ce_fwd_bwd", "logits:TV targets:T/i upstream:T/f token_loss:T/f dlogits:TV", "softcap=3"}};

}  // namespace
}  // namespace mulligan::kernel_test::softcap_ce_test
