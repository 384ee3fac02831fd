// Score transforms in test-time training: the order in which they learn, what they change, and refusals.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "framework/check/transform_probe.h"
#include "framework/config/ttt_config.h"
#include "tests/support/built.h"
#include "tests/support/sentence.h"
#include "tests/unit/ttt_world.h"

namespace mulligan::ttt_transform_test {
namespace {

const std::vector<int> kLengths = {9, 14, 31, 7, 22, 12, 18, 27, 5, 16};
constexpr const char* kNgram = "order = 3\nthreshold = 0.4\nboost = 1.75";

// Text of few words, so that contexts come again.
const std::vector<std::uint16_t> tokens = [] {
  std::vector<std::uint16_t> made_up = made_up_stream(kLengths);
  for (std::uint16_t& token : made_up) token = token == 1 ? 1 : static_cast<std::uint16_t>(2 + token % 3);
  return made_up;
}();
const DocumentPlan plan = plan_documents(tokens, 1, tiny_config());

TttRunner::Options with_transform(TransformOrder order, const std::string& keys = kNgram) {
  TttRunner::Options options = tiny_options();
  options.transform = "ngram_tilt";
  options.transform_keys = keys;
  options.transform_order = order;
  return options;
}

// An n-gram model by its definition, without keys or tables.
class NaiveNgrams {
 public:
  std::vector<int> propose(const std::vector<int>& history) const {
    const auto found = counts_.find(context(history));
    if (history.size() < 2 || found == counts_.end()) return {};
    int total = 0, most = 0;
    for (const auto& [token, count] : found->second) total += count, most = std::max(most, count);
    if (static_cast<float>(most) / static_cast<float>(total) < 0.4F) return {};
    return {top_.at(context(history))};
  }
  void learn(const std::vector<int>& history, int token) {
    if (history.size() < 2) return;
    auto& of = counts_[context(history)];
    int most = 0;
    for (const auto& [other, count] : of) most = std::max(most, count);
    if (++of[token] > most) top_[context(history)] = token;  // the first that is so frequent
  }

 private:
  static std::vector<int> context(const std::vector<int>& history) {
    return {history.end() - std::min<std::ptrdiff_t>(2, std::ssize(history)), history.end()};
  }
  std::map<std::vector<int>, std::map<int, int>> counts_;
  std::map<std::vector<int>, int> top_;
};

using Proposed = std::map<std::int64_t, std::vector<int>>;  // by target

// What a feed proposes for the batches of a plan, asked as a run asks.
Proposed fed(TransformOrder order) {
  const auto transform = make_plugin<Transform>(MLG_TRANSFORM, "ngram_tilt", kNgram);
  TransformFeed feed(*transform, order, tokens, plan, kTinyVocabulary, 3);
  Proposed proposed;
  feed.enter_lane(0);
  for (const PlannedBatch& batch : plan.queue) {
    for (std::int64_t chunk = 0; chunk < batch.chunks; ++chunk) {
      feed.propose(batch, chunk, [&](std::size_t, std::int64_t target, std::span<const mlg_bias> biases) {
        auto& list = proposed[target];
        for (const mlg_bias& bias : biases) list.push_back(bias.token);
      });
    }
  }
  return proposed;
}

// What an n-gram model proposes that learns in the order of scoring, of all documents or of each by itself.
Proposed of_documents(bool alone) {
  NaiveNgrams all;
  Proposed expected;
  std::map<int, NaiveNgrams> own;
  std::map<int, std::vector<int>> histories;
  for (const PlannedBatch& batch : plan.queue) {
    for (std::int64_t chunk = 0; chunk < batch.chunks; ++chunk) {
      for (const int number : batch.documents) {
        NaiveNgrams& ngrams = alone ? own[number] : all;
        std::vector<int>& history = histories[number];
        if (history.empty()) history = {1};
        const TargetRange range = plan.range(batch, number, chunk);
        for (std::int64_t target = range.first; target < range.last; ++target) {
          expected[target] = ngrams.propose(history);
          ngrams.learn(history, tokens[static_cast<std::size_t>(target)]);
          history.push_back(tokens[static_cast<std::size_t>(target)]);
        }
      }
    }
  }
  return expected;
}

TEST(TransformFeed, LearnsInTheOrderOfScoringOrTheDocumentAlone) {
  const Proposed found = fed(TransformOrder::queue);
  EXPECT_EQ(found, of_documents(false));
  EXPECT_GT(std::ranges::count_if(found, [](const auto& p) { return !p.second.empty(); }), 20);
  EXPECT_EQ(fed(TransformOrder::document), of_documents(true));
}

TinyOutcome run(const TttRunner::Options& options) {
  return run_tiny({.options = options, .tokens = tokens});
}

// Scores move where something was proposed, and nowhere else; adapters and base model train on the plain loss.
TEST(TttTransform, ChangesScoresAndNothingElse) {
  const TinyOutcome plain = run(tiny_options());
  EXPECT_EQ(plain.report.untransformed.tokens, 0u);
  for (const TransformOrder order : {TransformOrder::queue, TransformOrder::document, TransformOrder::file}) {
    SCOPED_TRACE(word_of(order));
    const TinyOutcome tilted = run(with_transform(order));
    EXPECT_EQ(tilted.report.untransformed.loss_nats, plain.report.sums.loss_nats);
    EXPECT_EQ(tilted.report.untransformed.tokens, plain.report.sums.tokens);
    int hits = 0, misses = 0;
    for (const auto& [target, proposal] : fed(order)) {
      const auto at = static_cast<std::size_t>(target);
      const double change = static_cast<double>(tilted.losses[at]) - static_cast<double>(plain.losses[at]);
      if (proposal.empty()) {
        EXPECT_EQ(tilted.losses[at], plain.losses[at]) << "target " << target;
      } else if (proposal[0] == tokens[at]) {
        // The hint's own probability is that of the target: log(1 - p + p e^b) - b.
        const double p = std::exp(-static_cast<double>(plain.losses[at]));
        EXPECT_NEAR(change, std::log(1 - p + p * std::exp(1.75)) - 1.75, 1e-5) << "target " << target;
        ++hits;
      } else {
        EXPECT_GE(change, 0) << "target " << target;
        EXPECT_LE(change, 1.75) << "target " << target;
        ++misses;
      }
    }
    EXPECT_GT(hits, 0);
    EXPECT_GT(misses, 0);
  }
}

// Whatever is proposed, the probabilities of all tokens sum to one.
TEST(TransformedLoss, ProbabilitiesSumToOne) {
  const std::vector<double> logits = {0.3, -2.0, 5.5, 1.0, -0.25, 30.0, -40.0};
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit);
  const auto loss = [&](std::size_t token) { return std::log(sum) - logits[token]; };
  const std::vector<std::vector<mlg_bias>> proposals = {
      {}, {{2, 2.625}}, {{5, 2.625}}, {{2, -50.0}}, {{6, 50.0}}, {{0, 1.0}, {5, -3.0}, {2, 0.5}, {1, 4.0}}};
  for (const auto& proposal : proposals) {
    std::vector<double> proposed;
    for (const mlg_bias& bias : proposal) proposed.push_back(loss(static_cast<std::size_t>(bias.token)));
    double total = 0;
    for (std::size_t token = 0; token < logits.size(); ++token)
      total += std::exp(-transformed_loss(loss(token), static_cast<std::int32_t>(token), proposal, proposed));
    EXPECT_NEAR(total, 1.0, 1e-9) << proposal.size() << " biases";
  }
}

TttRunner::Options flawed(const std::string& how) {
  TttRunner::Options options = tiny_options();
  options.transform = "flawed_transform";
  options.transform_keys = "how = '" + how + "'";
  options.transform_file = (test_support::built("flawed_plugins") / "mulligan_flawed_transform.so").string();
  return options;
}

TEST(TttTransform, APeekingTransformIsRefused) {
  EXPECT_GT(run(flawed("not_at_all")).report.sums.tokens, 0u);
  EXPECT_TRUE(refuses([&] { run(flawed("remembers")); }, ExitCode::bad_configuration, "[ttt.transform]",
                      "knows more than the tokens before it"));
  EXPECT_TRUE(refuses([&] { run(flawed("outside")); }, "the vocabulary has 24"));
}

// The probe finds a host that tells a token before it asks for the proposal.
TEST(TransformProbe, FindsAnOrderThatTellsTooEarly) {
  const auto transform = make_plugin<Transform>(MLG_TRANSFORM, "ngram_tilt", "order = 16\nthreshold = 0.8");
  EXPECT_EQ(transform_problem(*transform, 8192), "");
  EXPECT_EQ(transform_problem(*transform, 2), "");
  for (const std::size_t ahead : {1u, 2u, 7u})
    EXPECT_TRUE(contains(transform_problem(*transform, 8192, ahead), "changes with the tokens from"))
        << ahead;
}

}  // namespace
}  // namespace mulligan::ttt_transform_test
