// The doctor's checks of token streams and losses: each catches its fault, and a healthy corpus passes all.
#include "tools/doctor/corpus_checks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "framework/core/philox.h"
#include "framework/data/shard.h"
#include "tests/support/scratch_folder.h"
#include "tools/doctor/loss_checks.h"

namespace mulligan::doctor::doctor_corpus_test {
namespace {

using Tokens = std::vector<std::uint16_t>;

// Like a text: some ids are common (Zipf), and what follows an id depends on it.
Tokens text_like(std::size_t count, int vocabulary, std::uint64_t seed) {
  const PhiloxStream random(seed, "doctor/test");
  std::vector<double> cumulative;
  double sum = 0;
  for (int i = 0; i < vocabulary; ++i) cumulative.push_back(sum += 1.0 / (i + 3));
  Tokens tokens;
  for (std::size_t i = 0; i < count; ++i) {
    const double drawn = random.uniform(i) * sum;
    const auto id =
        static_cast<std::uint16_t>(std::ranges::upper_bound(cumulative, drawn) - cumulative.begin());
    const bool follows = i > 0 && random.uniform(count + i) < 0.4;
    tokens.push_back(follows ? static_cast<std::uint16_t>((tokens.back() * 7 + 1) % vocabulary) : id);
  }
  return tokens;
}

Corpus corpus_of(const Tokens& tokens, int vocabulary) {
  return {"training", token_statistics(std::vector<Tokens>{tokens}, vocabulary)};
}

const Finding& finding(const std::vector<Finding>& findings, const std::string& id) {
  return *std::ranges::find(findings, id, &Finding::id);
}

TEST(DoctorDocuments, ShardsWithoutABeginningAreNamed) {
  const test_support::ScratchFolder folder;
  const std::filesystem::path with = folder.path() / "with.bin", without = folder.path() / "without.bin";
  write_shard(with, Tokens(100, 7));
  write_shard(without, Tokens(100, 7));
  EXPECT_EQ(check_documents("training", {with, without}, 1).verdict, CheckOutcome::warn);
  Tokens tokens(100, 7);
  tokens[60] = 1;
  write_shard(with, tokens);
  EXPECT_EQ(check_documents("training", {without, with}, 1).verdict, CheckOutcome::pass);
}

TEST(TokenStatistics, OfAStreamByHand) {
  const TokenStatistics s = token_statistics(std::vector<Tokens>{{0, 1, 0, 1, 0, 1, 1, 9}}, 4);
  EXPECT_EQ(s.tokens, 8u);
  EXPECT_EQ(s.outside, 1u);
  EXPECT_EQ(s.distinct, 2u);
  EXPECT_EQ(s.commonest, 1);
  EXPECT_NEAR(s.commonest_share, 4.0 / 7, 1e-12);
  EXPECT_NEAR(s.unigram_nats, -(3.0 / 7) * std::log(3.0 / 7) - (4.0 / 7) * std::log(4.0 / 7), 1e-12);
  EXPECT_NEAR(s.repeat_share, 1.0 / 6, 1e-12);
  // After 0 always 1; after 1 twice 0 and once 1.
  EXPECT_NEAR(s.bigram_nats, 0.5 * (-(2.0 / 3) * std::log(2.0 / 3) - (1.0 / 3) * std::log(1.0 / 3)), 1e-12);
}

TEST(TokenStatistics, PairsEndAtTheEdgeOfAPiece) {
  const TokenStatistics s = token_statistics(std::vector<Tokens>{{2, 2}, {2, 1}}, 4);
  EXPECT_NEAR(s.repeat_share, 0.5, 1e-12);
}

TEST(TokenStatistics, SamplesReachFromTheFirstTokenToTheLast) {
  const test_support::ScratchFolder folder;
  std::vector<std::filesystem::path> shards;
  for (int shard = 0; shard < 3; ++shard) {
    shards.push_back(folder / ("s" + std::to_string(shard) + ".bin").c_str());
    write_shard(shards.back(), Tokens(200'000, static_cast<std::uint16_t>(shard)));
  }
  const auto all = sample_tokens(shards, 600'000);
  ASSERT_EQ(all.size(), 3u);
  const auto some = sample_tokens(shards, 300'000);
  ASSERT_EQ(some.size(), 4u);
  EXPECT_EQ(some.front().front(), 0);
  EXPECT_EQ(some.back().back(), 2);
  EXPECT_EQ(some.back().size(), 65'536u);
}

TEST(CorpusChecks, AHealthyTextPasses) {
  for (const int vocabulary : {256, 1024, 8192}) {
    for (const Finding& f :
         check_corpus(corpus_of(text_like(300'000, vocabulary, 3), vocabulary), vocabulary, nullptr)) {
      EXPECT_EQ(f.verdict, CheckOutcome::pass) << vocabulary << " " << f.id << " " << f.measured;
    }
  }
}

// The corpus that gave a validation loss of 0.0008 nats: 32,830 of 32,832 tokens were the unknown one.
TEST(CorpusChecks, ACorpusOfOneTokenFails) {
  Tokens tokens(32'832, 128);
  tokens[100] = 5;
  tokens[20'000] = 5;
  const Corpus corpus = corpus_of(tokens, 2048);
  EXPECT_NEAR(corpus.statistics.unigram_nats / std::numbers::ln2, 0.00094, 5e-5);
  const std::vector<Finding> findings = check_corpus(corpus, 2048, nullptr);
  EXPECT_EQ(finding(findings, "D22").verdict, CheckOutcome::fail);
  EXPECT_EQ(finding(findings, "D23").verdict, CheckOutcome::fail);
  EXPECT_EQ(finding(findings, "D20").verdict, CheckOutcome::pass);
  EXPECT_EQ(worst(findings), CheckOutcome::fail);
  EXPECT_NE(findings_text(findings).find("FAIL D22  entropy of token ids, training data: 0.001 bits"),
            std::string::npos)
      << findings_text(findings);
}

TEST(CorpusChecks, IdsBeyondTheVocabularyFail) {
  Tokens tokens = text_like(100'000, 1024, 4);
  tokens[77] = 1024;
  EXPECT_EQ(finding(check_corpus(corpus_of(tokens, 1024), 1024, nullptr), "D20").verdict, CheckOutcome::fail);
}

TEST(CorpusChecks, OverlapWarnsAndFailsAndNamesItsRemedy) {
  TextOverlap overlap;
  EXPECT_EQ(check_overlap(overlap).verdict, CheckOutcome::warn) << "cannot be judged";
  overlap.passages = 10'000;
  EXPECT_EQ(check_overlap(overlap).verdict, CheckOutcome::pass);
  overlap.similar = 0.03;
  EXPECT_EQ(check_overlap(overlap).verdict, CheckOutcome::warn);
  overlap.similar = 0.1;
  const Finding found = check_overlap(overlap);
  EXPECT_EQ(found.verdict, CheckOutcome::fail);
  EXPECT_NE(found.hint.find("mulligan prepare --drop-overlap"), std::string::npos) << found.hint;
  overlap.similar = 0.03;
  overlap.copied = 0.02;
  EXPECT_EQ(check_overlap(overlap).verdict, CheckOutcome::fail);
}

TEST(LossChecks, UnitsAreNats) {
  EXPECT_EQ(judge_uniform_loss(std::log(8192), 8192, MLG_F32).verdict, CheckOutcome::pass);
  const Finding bits = judge_uniform_loss(13, 8192, MLG_F32);
  EXPECT_EQ(bits.verdict, CheckOutcome::fail);
  EXPECT_NE(bits.message.find("the loss is in bits"), std::string::npos) << bits.message;
  EXPECT_EQ(judge_uniform_loss(0.9 * std::log(8192), 8192, MLG_F32).verdict, CheckOutcome::fail);
  EXPECT_EQ(judge_uniform_loss(std::log(8192) + 0.01, 8192, MLG_F32).verdict,
            CheckOutcome::warn);  // a regulariser
  EXPECT_EQ(judge_uniform_loss(std::nan(""), 8192, MLG_F32).verdict, CheckOutcome::fail);
  EXPECT_EQ(judge_other_loss({.equal = 3, .certain = 0}).verdict, CheckOutcome::pass);
  EXPECT_EQ(judge_other_loss({.equal = 3, .certain = 3}).verdict, CheckOutcome::fail);
  EXPECT_EQ(judge_other_loss({.equal = std::nan(""), .certain = 0}).verdict, CheckOutcome::fail);
}

TEST(LossChecks, GradientsOfARowSumToZero) {
  EXPECT_EQ(judge_loss_gradient(0, 1e-6, MLG_F32).verdict, CheckOutcome::pass);
  EXPECT_EQ(judge_loss_gradient(0, 0.01, MLG_F32).verdict, CheckOutcome::fail);
  EXPECT_EQ(judge_loss_gradient(0.3, 0, MLG_F32).verdict, CheckOutcome::fail);
  EXPECT_EQ(judge_loss_gradient(0, 0, MLG_F32, 1e-6).verdict, CheckOutcome::pass);
  EXPECT_EQ(judge_loss_gradient(0, 0, MLG_F32, 1).verdict, CheckOutcome::warn) << "a row without a gradient";
  EXPECT_EQ(judge_loss_gradient(0, 0, MLG_F32, std::nan("")).verdict, CheckOutcome::warn);
}

TEST(Findings, ANumberThatIsNoneFails) {
  EXPECT_EQ(judge(std::nan(""), {-1, 1, -1, 1}), CheckOutcome::fail);
  EXPECT_EQ(judge(0.5, {-1, 1, -0.1, 0.1}), CheckOutcome::warn);
  EXPECT_EQ(judge(0, {-1, 1, -0.1, 0.1}), CheckOutcome::pass);
}

}  // namespace
}  // namespace mulligan::doctor::doctor_corpus_test
