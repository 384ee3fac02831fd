// The score transform ngram_tilt against the public reference: hints of whole streams in file order, exact,
// and the tilted loss.
#include <gtest/gtest.h>

#include <cmath>

#include "framework/ttt/score_transform.h"
#include "plugins/transforms/ngram_tilt/ngram_counts.h"
#include "tests/golden/golden_fixture.h"
#include "tests/support/plugins.h"

namespace mulligan::ngram_tilt_golden_test {
namespace {

using Json = nlohmann::json;

std::unique_ptr<Transform> ngram_tilt(const Json& of, double threshold) {
  return make_plugin<Transform>(
      MLG_TRANSFORM, "ngram_tilt",
      fmt::format("order = {}\nthreshold = {:.17g}\nboost = {:.17g}", of.at("order").get<int>(), threshold,
                  of.at("boost").get<double>()));
}

// Proposals for tokens[1..], each before its token is told.
std::vector<std::vector<mlg_bias>> proposals_of(const Transform& transform, const Json& of,
                                                const std::vector<std::int32_t>& tokens) {
  const auto stream = transform.open({of.at("vocab"), static_cast<std::int64_t>(tokens.size()) - 1, 1});
  std::vector<std::vector<mlg_bias>> proposals;
  for (std::size_t i = 1; i < tokens.size(); ++i) {
    const auto proposal = stream->propose(0);
    proposals.emplace_back(proposal.begin(), proposal.end());
    stream->observe(0, tokens[i]);
  }
  return proposals;
}

TEST(NgramTiltGolden, HintsOfWholeStreams) {
  const GoldenFixture fixture("ngram_tilt");
  int cases = 0;
  for (const auto& [name, info] : fixture.manifest().at("cases").items()) {
    SCOPED_TRACE(name);
    const std::vector<std::int32_t> tokens = fixture.ints(name + ".tokens"),
                                    hints = fixture.ints(name + ".hint");
    const std::vector<std::uint8_t> gate = fixture.bytes(name + ".gate");
    const double boost = info.at("boost");
    const auto proposals = proposals_of(*ngram_tilt(info, info.at("threshold")), info, tokens);
    ASSERT_EQ(proposals.size(), hints.size());
    int gated = 0, hits = 0;
    for (std::size_t i = 0; i < proposals.size(); ++i) {
      ASSERT_EQ(proposals[i].size(), gate[i]) << "target " << i;
      if (proposals[i].empty()) continue;
      EXPECT_EQ(proposals[i][0].token, hints[i]) << "target " << i;
      EXPECT_EQ(proposals[i][0].bias, boost);
      ++gated;
      hits += proposals[i][0].token == tokens[i + 1];
    }
    EXPECT_EQ(gated, info.at("gated").get<int>());
    EXPECT_EQ(hits, info.at("hits").get<int>());
    ++cases;
  }
  EXPECT_GT(cases, 0);
}

// Below the gate: every context's most frequent token, and its share to the bit.
TEST(NgramTiltGolden, TokensAndConfidences) {
  const GoldenFixture fixture("ngram_tilt");
  for (const auto& [name, info] : fixture.manifest().at("cases").items()) {
    SCOPED_TRACE(name);
    const std::vector<std::int32_t> tokens = fixture.ints(name + ".tokens");
    const std::vector<std::int32_t> top = fixture.ints(name + ".top_token");
    const std::vector<float> share = fixture.floats(name + ".top_prob");
    const auto proposals = proposals_of(*ngram_tilt(info, 0), info, tokens);
    const std::size_t length = info.at("order").get<std::size_t>() - 1;
    transforms::NgramCounts counts(length);
    std::vector<std::int32_t> history(tokens.begin() + 1, tokens.begin() + 2);  // the seed: the first target
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
      float expected = 0;
      if (history.size() >= length) {
        const std::uint64_t key = transforms::NgramCounts::context_key(std::span(history).last(length));
        if (const transforms::ContextCount* found = counts.find(key)) expected = found->confidence();
        counts.count(key, tokens[i + 1]);
      }
      history.push_back(tokens[i + 1]);
      EXPECT_EQ(expected, share[i]) << "target " << i;
      EXPECT_EQ(proposals[i].empty(), share[i] == 0) << "target " << i;
      EXPECT_EQ(proposals[i].empty() ? 0 : proposals[i][0].token, top[i]) << "target " << i;
    }
  }
}

TEST(NgramTiltGolden, TiltedLosses) {
  const GoldenFixture fixture("ngram_tilt");
  const Json& tolerance = fixture.manifest().at("tolerance");
  const std::vector<std::int32_t> targets = fixture.ints("tilt.targets"), hints = fixture.ints("tilt.hints");
  const std::vector<std::uint8_t> gate = fixture.bytes("tilt.gate");
  const std::vector<double> loss = fixture.doubles("tilt.loss"), boost = fixture.doubles("tilt.boost"),
                            log_q = fixture.doubles("tilt.log_q_hint"),
                            tilted = fixture.doubles("tilt.tilted_loss"),
                            in_f32 = fixture.doubles("tilt.tilted_loss_f32run");
  int tilts = 0;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const std::vector<mlg_bias> proposal =
        gate[i] ? std::vector<mlg_bias>{{hints[i], boost[i]}} : std::vector<mlg_bias>{};
    const double hint_loss = -log_q[i];
    const double ours = transformed_loss(loss[i], targets[i], proposal, {&hint_loss, proposal.size()});
    EXPECT_NEAR(ours, tilted[i], tolerance.at("tilt_f64").get<double>()) << "token " << i;
    EXPECT_NEAR(ours, in_f32[i], tolerance.at("tilt_f32").get<double>()) << "token " << i;
    tilts += gate[i];
  }
  EXPECT_GT(tilts, 0);
}

// From the logits: the tilted distribution of one row is the softmax with the boost on the hint's logit.
TEST(NgramTiltGolden, TiltedDistribution) {
  const GoldenFixture fixture("ngram_tilt");
  const std::vector<double> expected = fixture.doubles("tilt.tilted_log_probs_row1");
  const std::size_t vocabulary = expected.size();
  const std::vector<double> logits = fixture.doubles("tilt.logits");
  const std::size_t biases = fixture.bytes("tilt.gate")[1];  // 0: a row that is not gated
  const mlg_bias hint{fixture.ints("tilt.hints")[1], fixture.doubles("tilt.boost")[1]};
  const std::span<const double> row(&logits[vocabulary], vocabulary);
  double sum = 0, total = 0;
  for (const double logit : row) sum += std::exp(logit);
  const auto loss = [&](std::size_t token) { return std::log(sum) - row[token]; };
  const double hint_loss = loss(static_cast<std::size_t>(hint.token));
  for (std::size_t token = 0; token < vocabulary; ++token) {
    const double tilted = transformed_loss(loss(token), static_cast<std::int32_t>(token), {&hint, biases},
                                           {&hint_loss, biases});
    EXPECT_NEAR(-tilted, expected[token], fixture.manifest().at("tolerance").at("tilt_f64").get<double>());
    total += std::exp(-tilted);
  }
  EXPECT_NEAR(total, 1, 1e-12);
}

}  // namespace
}  // namespace mulligan::ngram_tilt_golden_test
