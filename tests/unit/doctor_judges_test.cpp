// The doctor's judgements of numbers, of token streams and of losses.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "framework/checkpoint/compare.h"
#include "framework/core/philox.h"
#include "framework/data/shard.h"
#include "tests/support/scratch_folder.h"
#include "tools/doctor/corpus_checks.h"
#include "tools/doctor/model_checks.h"
#include "tools/doctor/outcome_checks.h"

namespace mulligan::doctor::doctor_judges_test {
namespace {

bool says(const Finding& finding, const char* words) {
  return finding.message.find(words) != std::string::npos && !finding.hint.empty();
}

Finding finding(const std::vector<Finding>& findings, const std::string& id) {
  return *std::ranges::find(findings, id, &Finding::id);
}
Finding weights_finding(const std::string& id, const std::vector<ParameterSpec>& specs,
                        const Weights& weights, WeightOrigins origin = WeightOrigins::drawn) {
  return finding(check_weights(specs, weights, origin), id);
}

std::vector<float> normal(std::size_t count, double deviation) {
  std::vector<float> values(count);
  PhiloxStream(1, "judges").fill_normal(values, deviation);
  return values;
}

ParameterSpec matrix(const char* name, std::int64_t rows, std::int64_t columns, Initial kind, double value) {
  return {name, TensorType(MLG_F32, {rows, columns}), {{0, rows, kind, value}}, true};
}

// After a few updates of AdamW every element of a small embedding has moved by the sum of the rates, and no more.
TEST(WeightChecks, EqualStepsAreNotTakenForAnotherDtype) {
  const std::vector<ParameterSpec> specs = {matrix("w", 100, 100, Initial::normal, 0.005)};
  std::vector<float> moved = normal(10'000, 0.003);
  for (std::size_t i = 0; i < moved.size(); ++i) moved[i] += i % 2 ? 0.03F : -0.03F;
  EXPECT_LT(test_magnitudes(moved).log2_spread, 0.5);
  EXPECT_EQ(weights_finding("D05", specs, {{"w", moved}}).verdict, CheckOutcome::pass);
  for (float& value : moved) value *= 30;  // in the range where the other cause puts them
  EXPECT_EQ(weights_finding("D05", specs, {{"w", moved}}).verdict, CheckOutcome::fail);
}

TEST(WeightChecks, ValuesThatAreNone) {
  const std::vector<ParameterSpec> specs = {matrix("w", 10, 10, Initial::normal, 0.02),
                                            matrix("zeros", 4, 4, Initial::zeros, 0)};
  Weights weights = {{"w", normal(100, 0.02)}, {"zeros", std::vector<float>(16, 0.0F)}};
  EXPECT_EQ(weights_finding("D06", specs, weights).verdict, CheckOutcome::pass);
  const Finding never_updated = weights_finding("D06", specs, weights, WeightOrigins::trained);
  EXPECT_EQ(never_updated.verdict, CheckOutcome::warn);
  EXPECT_TRUE(says(never_updated, "zeros")) << never_updated.message;
  for (const float value : {std::nanf(""), INFINITY}) {
    weights["w"] = normal(100, 0.02);
    weights["w"][7] = value;
    const Finding broken = weights_finding("D06", specs, weights, WeightOrigins::trained);
    EXPECT_EQ(broken.verdict, CheckOutcome::fail);
    EXPECT_TRUE(says(broken, "element 7 of w")) << broken.message;
  }
  weights["w"] = std::vector<float>(100, 0.5F);
  EXPECT_TRUE(says(weights_finding("D06", specs, weights), "all 100 elements of w are 0.5"));
}

TEST(WeightChecks, BandsOfTheEmbedding) {
  const std::vector<ParameterSpec> specs = {matrix("tok_emb.weight", 200, 100, Initial::normal, 0.005)};
  const auto verdict = [&](std::vector<float> values, WeightOrigins origin) {
    return weights_finding("D07", specs, {{"tok_emb.weight", std::move(values)}}, origin).verdict;
  };
  EXPECT_EQ(verdict(normal(20'000, 0.005), WeightOrigins::drawn), CheckOutcome::pass);
  EXPECT_EQ(verdict(normal(20'000, 0.007), WeightOrigins::drawn), CheckOutcome::fail)
      << "not what was to be drawn";
  EXPECT_EQ(verdict(normal(20'000, 0.1), WeightOrigins::trained), CheckOutcome::pass);
  EXPECT_EQ(verdict(normal(20'000, 1.05), WeightOrigins::trained), CheckOutcome::fail);
  EXPECT_EQ(verdict(normal(20'000, 1e-4), WeightOrigins::trained), CheckOutcome::fail);
  std::vector<float> shifted = normal(20'000, 0.1);
  for (float& value : shifted) value += 0.2F;
  EXPECT_EQ(verdict(shifted, WeightOrigins::trained), CheckOutcome::fail);
}

ModelConfig model_of(std::int64_t vocabulary) {
  ModelConfig model;
  model.vocabulary = vocabulary;
  model.width = 128;
  model.embedding_init_std = 0.005;
  return model;
}

CheckOutcome initial_loss(double nats, const ModelConfig& model) {
  return judge_initial_loss(nats, model, model_parameters(model)).verdict;
}

TEST(LossLevel, OfInitialWeightsIsLnVOnBothSides) {
  const ModelConfig model = model_of(1000);
  EXPECT_EQ(initial_loss(6.9078, model), CheckOutcome::pass);
  EXPECT_EQ(initial_loss(9.9658, model), CheckOutcome::fail) << "log2 of V: bits";
  EXPECT_EQ(initial_loss(0.6, model), CheckOutcome::fail) << "far too good";
  EXPECT_EQ(initial_loss(std::nan(""), model), CheckOutcome::fail);
  ModelConfig wide = model;
  wide.embedding_init_std = 0.1;  // logits of standard deviation 1.13: 0.64 nats above ln V
  EXPECT_EQ(initial_loss(6.9078 + 0.64, wide), CheckOutcome::pass);
}

TEST(LossLevel, OfTrainedWeights) {
  EXPECT_EQ(judge_trained_loss(3.0, 151'936, 0.9).verdict, CheckOutcome::pass);
  EXPECT_TRUE(says(judge_trained_loss(18.55, 151'936, 0.9), "worse than uniform"));
  EXPECT_EQ(judge_trained_loss(9.0, 151'936, 0.9).verdict, CheckOutcome::fail);
  EXPECT_EQ(judge_trained_loss(0.0008, 151'936, 0.9).verdict, CheckOutcome::fail);
}

TEST(LossLevel, LogitsThatSayNothing) {
  const ModelConfig model = model_of(50);
  std::vector<double> logits;
  for (const float value : normal(50 * 64, 1)) logits.push_back(static_cast<double>(value));
  EXPECT_EQ(judge_logits(logits, model).verdict, CheckOutcome::pass);
  EXPECT_TRUE(says(judge_logits(std::vector<double>(50 * 64, 0.5), model), "")) << "equal ones";
  std::vector<double> same;
  for (int row = 0; row < 64; ++row) same.insert(same.end(), logits.begin(), logits.begin() + 50);
  EXPECT_TRUE(says(judge_logits(same, model), "the likeliest at every one"));
  std::vector<double> capped = logits;
  for (std::size_t i = 0; i < capped.size(); i += 10) capped[i] = 29.99;
  EXPECT_TRUE(says(judge_logits(capped, model), "at the softcap"));
  logits[123] = std::nan("");
  EXPECT_TRUE(says(judge_logits(logits, model), "token 23 at position 2"));
}

TEST(LossLevel, AHeadOfZerosMakesLogitsOfZero) {
  ModelConfig model = model_of(64);
  std::vector<double> logits(2 * 64, 0.0);
  EXPECT_EQ(judge_logits(logits, model, true).verdict, CheckOutcome::fail) << "the embedding is the head";
  model.family = ModelFamily::modded;
  resolve_model_defaults(model);
  EXPECT_EQ(judge_logits(logits, model, true).verdict, CheckOutcome::pass);
  EXPECT_EQ(judge_logits(logits, model).verdict, CheckOutcome::fail) << "trained";
  logits[70] = 1e-9;
  EXPECT_TRUE(says(judge_logits(logits, model, true), "1 of 128 are not 0"));
  EXPECT_EQ(model.embedding_init_std, 1);
  EXPECT_EQ(initial_loss(std::log(64), model), CheckOutcome::pass) << "however wide the embedding is drawn";
}

// Ramp tokens 0..T through the loader: every target is its input and one.
TEST(RowChecks, ARampThroughTheLoader) {
  const test_support::ScratchFolder folder;
  std::vector<std::uint16_t> ramp(1000);
  for (std::size_t i = 0; i < ramp.size(); ++i) ramp[i] = static_cast<std::uint16_t>(i);
  ramp[0] = 1;  // a beginning of a document
  write_shard(folder / "ramp.bin", ramp);
  LoaderOptions options;
  options.shards = {folder / "ramp.bin"};
  options.row_tokens = 99;
  Loader loader(options);
  std::vector<Batch> rows(2);
  for (Batch& row : rows) loader.next(row);
  EXPECT_EQ(rows[1].tokens.front(), 100);
  for (std::size_t t = 0; t < 99; ++t) EXPECT_EQ(rows[1].targets[t], rows[1].tokens[t] + 1);
  EXPECT_EQ(check_targets(rows, 0.01).verdict, CheckOutcome::pass);
  EXPECT_EQ(check_end_of_data(options, 0).verdict, CheckOutcome::pass);
  options.order = DataOrder::shuffled;
  options.group_spans = 4;  // of the ten rows
  EXPECT_EQ(check_end_of_data(options, 0).verdict, CheckOutcome::pass);
  options.max_segment_tokens = 33;  // three pieces from anywhere
  Loader shuffled(options);
  std::vector<Batch> pieces(1);
  shuffled.next(pieces[0]);
  EXPECT_NE(pieces[0].targets[32], pieces[0].tokens[33]);
  EXPECT_EQ(check_targets(pieces, 0.01).verdict, CheckOutcome::pass);
  pieces[0].targets[31] = 3;
  EXPECT_TRUE(says(check_targets(pieces, 0.01), "position 31 of row 0 is 3"));

  std::vector<Batch> copies = rows;
  for (Batch& row : copies) row.targets = row.tokens;
  EXPECT_TRUE(says(check_targets(copies, 0.01), "targets equal inputs"));
  std::vector<Batch> two_on = rows;
  for (Batch& row : two_on) std::ranges::rotate(row.targets, row.targets.begin() + 1);
  EXPECT_TRUE(says(check_targets(two_on, 0.01), "the target at position 0 of row 0 is"));
  rows[1].targets[40] = 3;
  EXPECT_TRUE(says(check_targets(rows, 0.01), "position 40 of row 1 is 3"));
}

TEST(OutcomeChecks, AValidationLossHasACeilingAndAFloor) {
  Outcome outcome{300, 3.0, WindowMean{200, 300, 3.1}, 1024, 0.8};
  EXPECT_EQ(judge_learning(outcome).verdict, CheckOutcome::pass);
  EXPECT_EQ(judge_validation_floor(outcome).verdict, CheckOutcome::pass);
  outcome.val_nats = 13.5;
  EXPECT_EQ(judge_learning(outcome).verdict, CheckOutcome::fail);
  EXPECT_TRUE(says(judge_validation_floor(outcome), "4.35 times that of training"));
  outcome.steps = 50;
  EXPECT_EQ(judge_learning(outcome).verdict, CheckOutcome::warn) << "so early it may";
  outcome.steps = 20;
  EXPECT_EQ(judge_learning(outcome).verdict, CheckOutcome::pass) << "so early it says nothing";
  outcome.val_nats = 0.0008;
  EXPECT_TRUE(says(judge_validation_floor(outcome), "below the data's floor"));
  outcome.val_nats = std::nan("");
  EXPECT_EQ(judge_learning(outcome).verdict, CheckOutcome::fail);
  EXPECT_EQ(judge_validation_floor(outcome).verdict, CheckOutcome::fail);
}

// A run that ends where guessing does has not learned, and says why where its data know.
TEST(OutcomeChecks, GuessingIsNoLearning) {
  Outcome outcome{150, 0.985 * std::log(1024), std::nullopt, 1024, 0, 0.8 * std::log(1024)};
  EXPECT_TRUE(
      says(judge_learning(outcome), "failed to learn: after 150 steps its validation loss of 6.8275 nats"));
  EXPECT_EQ(judge_learning(outcome).verdict, CheckOutcome::fail);
  EXPECT_NE(judge_learning(outcome).hint.find("learning rates"), std::string::npos);
  outcome.of_training = true;
  outcome.unigram_nats = 0.999 * std::log(1024);
  EXPECT_TRUE(says(judge_learning(outcome), "its training loss"));
  EXPECT_NE(judge_learning(outcome).hint.find("random"), std::string::npos);
  outcome.val_nats = 0.96 * std::log(1024);
  EXPECT_EQ(judge_learning(outcome).verdict, CheckOutcome::pass);
}

TEST(OutcomeChecks, TheMeanLossIsOfAllSteps) {
  LossAccount account;
  for (std::int64_t step = 100; step < 500; ++step) account.add(step, 20, 10, "plain");
  EXPECT_TRUE(says(judge_account(account, 500), "covers steps [100, 500), 400 of 500"));
  LossAccount whole;
  for (std::int64_t step = 0; step < 500; ++step) whole.add(step, 20, 10, "plain");
  EXPECT_EQ(judge_account(whole, 500).verdict, CheckOutcome::pass);
}

TEST(OutcomeChecks, UnitsAgree) {
  Throughput seen{1'000'000, 100, 1e5, 10, 12, 1e6, cpu_peak(2, false)};
  EXPECT_EQ(judge_throughput(seen).verdict, CheckOutcome::pass);
  seen.tokens_per_second = 100;  // per millisecond
  EXPECT_EQ(judge_throughput(seen).verdict, CheckOutcome::fail);
  seen.tokens_per_second = 1e5;
  seen.run_seconds = 0.012;
  EXPECT_EQ(judge_throughput(seen).verdict, CheckOutcome::fail);
  seen = {1'000'000'000, 100, 1e8, 10, 12, 1e7, cpu_peak(2, false)};
  EXPECT_TRUE(says(judge_throughput(seen), "more than the machine can do"));
}

std::vector<RatePoint> cosine(double floor) {
  std::vector<RatePoint> points;
  for (int i = 0; i <= 1000; ++i)
    points.push_back({i / 1000.0, floor + 0.5 * (1 + std::cos(3.14159265 * i / 1000)), 0, 0, 1, false});
  return points;
}

TEST(RateChecks, ARestartMustBeDeclared) {
  std::vector<RatePoint> points = cosine(0);
  EXPECT_EQ(check_rates("all", points).verdict, CheckOutcome::pass);
  // A phase of its own schedule, then the whole run's at that step: experiment C.
  for (std::size_t i = 0; i < 200; ++i)
    points[i].lr = 0.5 * (1 + std::cos(3.14159265 * static_cast<double>(i) / 200));
  const Finding jump = check_rates("all", points);
  EXPECT_EQ(jump.verdict, CheckOutcome::fail);
  EXPECT_TRUE(says(jump, "this is a warm restart")) << jump.message;
  std::vector<RatePoint> cycles = points, factors = points;
  for (std::size_t i = 200; i < cycles.size(); ++i) cycles[i].cycle = 1;
  EXPECT_EQ(check_rates("all", cycles).verdict, CheckOutcome::pass);
  std::vector<RatePoint> phases = cosine(0);
  for (std::size_t i = 0; i < 200; ++i) phases[i].lr *= phases[i].declared = 0.1;
  EXPECT_EQ(check_rates("all", phases).verdict, CheckOutcome::pass);
  std::vector<RatePoint> rejoined = points;
  for (std::size_t i = 200; i < rejoined.size(); ++i) rejoined[i].phase = 1, rejoined[i].restarts = true;
  EXPECT_EQ(check_rates("all", rejoined).verdict, CheckOutcome::pass) << "as the phase says";
  std::vector<RatePoint> warm_up = cosine(0);
  for (std::size_t i = 0; i < 10; ++i) warm_up[i].lr *= static_cast<double>(i) / 10;
  EXPECT_EQ(check_rates("all", warm_up).verdict, CheckOutcome::pass);
}

TEST(TrainingChecks, ARowIsLearnedByHeart) {
  EXPECT_EQ(judge_overfit(7, 0.2, 100).verdict, CheckOutcome::pass);
  EXPECT_EQ(judge_overfit(7, 0.9, 100).verdict, CheckOutcome::fail);
  EXPECT_EQ(judge_overfit(7, -1, 100).verdict, CheckOutcome::fail);
  EXPECT_EQ(judge_overfit(7, std::nan(""), 100).verdict, CheckOutcome::fail);
}

TEST(EvaluationChecks, TrainingAndEvaluationAgree) {
  EXPECT_EQ(judge_modes(5, 5.000001, 0, MLG_F32).verdict, CheckOutcome::pass);
  EXPECT_EQ(judge_modes(5, 5.01, 0, MLG_F32).verdict, CheckOutcome::fail);
  EXPECT_EQ(judge_modes(5.01, 5, 0.01, MLG_F32).verdict, CheckOutcome::warn) << "a regulariser";
  EXPECT_EQ(judge_modes(std::nan(""), 5, 0.01, MLG_F32).verdict, CheckOutcome::fail);
  EXPECT_EQ(judge_modes(3, 5, std::nullopt, MLG_F32).verdict, CheckOutcome::pass) << "no cross entropy";
  EXPECT_EQ(judge_modes(std::nan(""), 5, std::nullopt, MLG_F32).verdict, CheckOutcome::fail);
}

TEST(EvaluationChecks, AScoreDoesNotChangeByTraining) {
  double state = 3;
  const auto score = [&] { return state; };
  EXPECT_EQ(check_repeated_score(
                score, [] {}, true)
                .verdict,
            CheckOutcome::pass);
  const Finding changed = check_repeated_score(
      score, [&] { state = 3.1; }, true);
  EXPECT_EQ(changed.verdict, CheckOutcome::fail);
  EXPECT_TRUE(says(changed, "buffer contents left by training"));
}

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
}  // namespace mulligan::doctor::doctor_judges_test
