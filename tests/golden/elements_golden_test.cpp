// Elements of the later records by themselves against the public code (fixture
// folders smear_gate, asym_logit).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/asymmetric_softcap/op.h"
#include "kernels/cross_entropy/op.h"
#include "kernels/embedding/op.h"
#include "kernels/rms_norm/op.h"
#include "kernels/smear_gate/op.h"
#include "tests/golden/golden_fixture.h"
#include "tests/golden/value_runner.h"

namespace mulligan::elements_golden_test {
namespace {

// |a - b| at most `tolerance` of the largest |b|; where all of b is zero, of 1.
void expect_close(const std::vector<float>& ours, const std::vector<double>& theirs, double tolerance,
                  const std::string& what) {
  ASSERT_EQ(ours.size(), theirs.size()) << what;
  double largest = 0, off = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    largest = std::max(largest, std::abs(theirs[i]));
    off = std::max(off, std::isfinite(ours[i]) ? std::abs(ours[i] - theirs[i]) : INFINITY);
  }
  EXPECT_LE(off, tolerance * (largest == 0 ? 1 : largest)) << what;
}

class ElementsGolden : public testing::TestWithParam<GoldenKernels> {
 protected:
  std::unique_ptr<Backend> backend_ = make_golden_backend(GetParam());
};

// The manifest's tolerances for f32.
constexpr double forward_tolerance = 1e-6, gradient_tolerance = 1e-5;

// Between the embedding and the first norm, as in the model; and by itself.
TEST_P(ElementsGolden, SmearGate) {
  const GoldenFixture fixture("smear_gate");
  ASSERT_FALSE(fixture.manifest().at("cases").empty());
  for (const auto& [name, options] : fixture.manifest().at("cases").items()) {
    SCOPED_TRACE(name);
    const auto tensor = [&, prefix = name + "."](const char* what) { return prefix + what; };
    const std::int64_t length = options.at("T"), width = options.at("d"),
                       tokens = options.at("rows").get<std::int64_t>() * length;
    const ops::Smear smear{length, options.at("bos_masked").get<bool>() ? 1 : -1};
    ValueRunner run(*backend_);
    const Value ids = run.input("ids", {tokens}, MLG_I32),
                table = run.watched("emb", fixture.shape(tensor("emb"))),
                w = run.watched("w", fixture.shape(tensor("w"))), lambda = run.watched("lambda", {1}),
                upstream = run.input("upstream", {tokens, width});
    const Value smeared =
        ops::smear(run.tape(), ops::embedding(run.tape(), ids, table), ids, w, lambda, smear);
    const Value normed = ops::rms_norm(run.tape(), smeared, 1.0, std::ldexp(1.0, -23));
    run.keep("smeared", smeared);
    run.keep("normed", normed);
    run.tape().backward(normed, upstream);
    run.prepare();
    for (const char* input : {"emb", "w", "lambda", "upstream"})
      run.set(input, fixture.floats(tensor(input)));
    run.set("ids", fixture.ints(tensor("ids")));
    run.run();
    for (const char* value : {"smeared", "normed"})
      expect_close(run.get(value), fixture.doubles(tensor(value)), forward_tolerance, value);
    for (const char* input : {"emb", "w", "lambda"}) {
      expect_close(run.get(std::string("d ") + input), fixture.doubles(tensor("grad_") + input),
                   gradient_tolerance, input);
    }

    ValueRunner alone(*backend_);
    const Value again =
        ops::smear(alone.tape(), alone.watched("x", {tokens, width}), alone.input("ids", {tokens}, MLG_I32),
                   alone.watched("w", fixture.shape(tensor("w"))), alone.watched("lambda", {1}), smear);
    alone.tape().backward(again, alone.input("upstream", {tokens, width}));
    alone.prepare();
    std::vector<float> rows;
    const std::vector<float> embeddings = fixture.floats(tensor("emb"));
    for (const std::int32_t id : fixture.ints(tensor("ids"))) {
      const auto row = embeddings.begin() + id * width;
      rows.insert(rows.end(), row, row + width);
    }
    alone.set("x", rows);
    for (const char* input : {"w", "lambda", "upstream"}) alone.set(input, fixture.floats(tensor(input)));
    alone.set("ids", fixture.ints(tensor("ids")));
    alone.run();
    for (const char* input : {"x", "w", "lambda"}) {
      expect_close(alone.get(std::string("d ") + input),
                   fixture.doubles(tensor("grad_") + input + "_smear_only"), gradient_tolerance, input);
    }
  }
}

// With cross entropy after it, each row's loss with an upstream of its own.
TEST_P(ElementsGolden, AsymmetricSoftcap) {
  const GoldenFixture fixture("asym_logit");
  ASSERT_FALSE(fixture.manifest().at("cases").empty());
  for (const auto& [name, caps] : fixture.manifest().at("cases").items()) {
    SCOPED_TRACE(name);
    const auto tensor = [&, prefix = name + "."](const char* what) { return prefix + what; };
    const std::vector<std::int64_t> shape = fixture.shape(tensor("logits"));
    ValueRunner run(*backend_);
    const Value logits = run.watched("logits", shape), positive = run.watched("pos", {1}),
                negative = run.watched("neg", {1}), targets = run.input("targets", {shape[0]}, MLG_I32),
                loss = run.input("loss", {shape[0]});
    const Value z = ops::capped(run.tape(), logits, positive, negative);
    run.keep("z", z);
    ops::cross_entropy(run.tape(), z, targets, loss);
    run.tape().backward(loss, run.input("upstream", {shape[0]}));
    run.prepare();
    for (const char* input : {"logits", "upstream"}) run.set(input, fixture.floats(tensor(input)));
    run.set("targets", fixture.ints(tensor("targets")));
    for (const char* cap : {"pos", "neg"}) run.set(cap, std::vector<float>{caps.at(cap).get<float>()});
    run.run();
    expect_close(run.get("z"), fixture.doubles(tensor("z")), forward_tolerance, "z");
    const std::vector<double> losses = fixture.doubles(tensor("loss"));
    const std::vector<float> ours = run.get("loss");
    for (std::size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(ours[i], losses[i], 2e-5) << i;
    const std::vector<double> gradient = fixture.doubles(tensor("grad_logits"));
    const std::vector<float> of_logits = run.get("d logits");
    for (std::size_t i = 0; i < gradient.size(); ++i) ASSERT_NEAR(of_logits[i], gradient[i], 3e-6) << i;
    for (const char* cap : {"pos", "neg"}) {
      EXPECT_NEAR(run.get(std::string("d ") + cap).at(0), fixture.doubles(tensor("grad_") + cap).at(0),
                  3e-6 * std::max(1.0, std::abs(fixture.doubles(tensor("grad_") + cap).at(0))))
          << cap;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, ElementsGolden, testing::Values(GoldenKernels::plain, GoldenKernels::cuda),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace mulligan::elements_golden_test
