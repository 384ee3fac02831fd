// Test-time training as a whole on a tiny model.
#include "framework/ttt/ttt_scorer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <limits>
#include <thread>

#include "framework/core/stop_request.h"
#include "framework/ttt/ttt_outputs.h"
#include "tests/support/sentence.h"
#include "tests/unit/ttt_world.h"

namespace mulligan::ttt_run_test {
namespace {

const std::vector<int> kLengths = {9, 14, 31, 7, 22, 12, 18, 27, 5, 16};

TinyRun tiny_run(const TttRunner::Options& options = tiny_options(),
                 const TttConfig& config = tiny_config()) {
  return {.options = options, .config = config, .tokens = made_up_stream(kLengths)};
}

TinyOutcome run(const TttRunner::Options& options, const TttConfig& config,
                const std::vector<float>& without = {}) {
  TinyRun how = tiny_run(options, config);
  how.without = without;
  return run_tiny(how);
}

// Building programs of many shapes takes seconds. In a process of its own: signals are taken over before there are threads.
TEST(TttRunDeathTest, ASignalEndsTheBuildingOfItsPrograms) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto build_when_stopped = [] {
    const StopSignals signals;
    kill(getpid(), SIGTERM);
    while (stop_signal() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    try {
      TinyScorer<> tiny(tiny_run());
    } catch (const Error& error) {
      _exit(error.code() == ExitCode::interrupted ? 7 : 1);
    }
    _exit(2);
  };
  EXPECT_EXIT(build_when_stopped(), ::testing::ExitedWithCode(7), "");
}

// The first values of a document's adapters do not depend on the documents that share its batch.
TEST(TttScorer, TheBackendDrawsTheAdaptersFirstValues) {
  TinyScorer<> tiny(tiny_run());
  const TensorStore& store = tiny.runner.store();
  const PhiloxDraws& draws = *tiny.how.options.draws;
  int uniform = 0;
  for (const std::int64_t documents : {1, 3}) {
    AdapterSet& set = tiny.scorer->adapters(documents);
    set.create(2);
    EXPECT_EQ(store.type(fmt::format("ttt/batch{}/draws/key", documents)).bytes(), 16);
    for (const auto& tensor : set.tensors()) {
      std::vector<float> expected(static_cast<std::size_t>(tensor->type.elements()));
      const PhiloxStream numbers = draws.stream(2, *tensor);
      for (std::size_t i = 0; tensor->uniform && i < expected.size(); ++i)
        expected[i] = static_cast<float>(tensor->bound * (2.0 * numbers.uniform(i) - 1.0));
      EXPECT_EQ(store.download_as<float>(tensor->master), expected) << tensor->name;
      if (!tensor->uniform) continue;
      ++uniform;
      EXPECT_EQ(store.download_as<float>(tensor->start), expected) << tensor->name;
      EXPECT_NE(draws.stream(3, *tensor).uniform(0), numbers.uniform(0));
    }
  }
  EXPECT_GT(uniform, 0);
  tiny.scorer->run();
}

// The baseline of the gain is the same windows: where nothing is learned the gain is nothing.
TEST(TttScorer, WithoutLearningThereIsNoGain) {
  TinyRun how = tiny_run();
  how.options.base = "none";
  how.config.prefix_documents = 0;
  for (const double lr : {0.0, 0.02}) {
    how.options.lr = lr;
    TinyScorer<> tiny(how);
    TttScorer& ttt = *tiny.scorer;
    const std::vector<float> without = ttt.score_without();
    ttt.compare_with(without);
    const TttReport report = ttt.run();
    EXPECT_EQ(report.compared.with.tokens, report.sums.tokens);
    EXPECT_EQ(report.compared.without.tokens, report.sums.tokens);
    EXPECT_EQ(report.compared.with.loss_nats == report.compared.without.loss_nats, lr == 0);
    EXPECT_EQ(report.compared.with.loss_nats, report.sums.loss_nats);
    for (const TttLengthBin& bin : report.bins)
      EXPECT_EQ(bin.compared.with.tokens, bin.score.tokens) << bin.shortest_tokens;
  }
}

// Of a long text a sample is scored without adaptation, and compared with the same tokens.
TEST(TttScorer, ALongTextIsComparedInASample) {
  TttConfig config;
  config.batch_documents = 8;
  const auto share_of = [&](int documents) {
    const DocumentPlan plan = plan_documents(
        made_up_stream(std::vector<int>(static_cast<std::size_t>(documents), 2048)), 1, config);
    std::int64_t chunks = 0;
    for (const PlannedBatch& batch : plan.queue) chunks += batch.chunks;
    return static_cast<double>(compared_chunks(plan, config.context_tokens).size()) /
           static_cast<double>(chunks);
  };
  EXPECT_EQ(share_of(16), 1);
  EXPECT_LT(share_of(800), 0.15);
  EXPECT_GT(share_of(800), 0.1);

  const std::vector<std::uint16_t> tokens = made_up_stream({6, 5});
  const float none = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> without = {none, none, 2, 3, none, none, none, 1, none, none, none};
  ScoreBook book(tokens, nullptr);
  for (std::int64_t target = 1; target < 11; ++target) book.enter(target, 0.5F);
  const Comparison compared = book.compare(without, {1, 11});
  EXPECT_EQ(compared.with.tokens, 3u);
  EXPECT_EQ(compared.without.tokens, 3u);
  EXPECT_EQ(compared.with.loss_nats, 1.5);
  EXPECT_EQ(compared.without.loss_nats, 6);
}

// Chunks of two rows in steps of up to 32 make programs of two rows, and train as steps of two do.
TEST(TttScorer, BaseProgramsAreNoLargerThanAChunk) {
  std::vector<std::vector<float>> trained;
  for (const int batch_rows : {2, 32}) {
    TinyRun how = tiny_run();
    how.options.base = "chunk_tokens = 16\nlr = 0.01\nbatch_rows = " + std::to_string(batch_rows);
    TinyScorer<> tiny(how);
    TttRunner& runner = tiny.runner;
    for (const char* tensor :
         {"ttt/base/tokens", "ttt/base/targets", "ttt/base/weights", "ttt/base/token_loss"})
      EXPECT_EQ(runner.store().type(tensor).elements(), 16) << tensor;
    EXPECT_GT(tiny.scorer->run().phases.at(0).steps.size(), 0u);
    trained.push_back(runner.parameter(runner.model().layouts.front().spec.name));
  }
  EXPECT_EQ(trained[0], trained[1]);
}

TEST(TttScorer, ReportsEveryBatchPhaseAndLength) {
  const TinyOutcome outcome = run(tiny_options(), tiny_config());
  const TttReport& report = outcome.report;
  EXPECT_EQ(report.documents, static_cast<std::int64_t>(kLengths.size()));
  ASSERT_EQ(report.batches.size(), 4u);  // the remainder of one document, then three times three
  EXPECT_EQ(report.batches[0].documents, 1);
  ASSERT_EQ(report.phases.size(), 1u);
  EXPECT_EQ(report.phases[0].documents, 4);
  ScoreSums sums;
  std::int64_t documents = 0;
  for (const TttBatchReport& batch : report.batches) {
    sums += batch.score;
    documents += batch.documents;
    EXPECT_EQ(batch.running.tokens, sums.tokens);
    ASSERT_EQ(batch.adapters.size(), 2u);
    EXPECT_EQ(batch.adapters[0].name, "A");
    EXPECT_GT(batch.adapters[0].norm, 0);
    EXPECT_GT(batch.adapters[0].drift, 0);
    EXPECT_GT(batch.adapters[1].norm, 0);
    EXPECT_EQ(batch.adapters[1].norm, batch.adapters[1].drift);
  }
  EXPECT_EQ(documents, report.documents);
  EXPECT_EQ(sums.tokens, report.sums.tokens);
  EXPECT_NEAR(sums.loss_nats, report.sums.loss_nats, 1e-9);
  std::uint64_t binned = 0;
  for (const TttLengthBin& bin : report.bins) binned += bin.score.tokens;
  EXPECT_EQ(binned, report.sums.tokens);
}

// With warm start A is carried over; without it every batch starts from new draws of the same size.
TEST(TttScorer, AWarmStartDriftsFurtherThanAFreshOne) {
  TttRunner::Options warm = tiny_options(),
                     fresh = tiny_options("rank = 3\nalpha = 6.0\nwarm_start_a = false");
  warm.optimizer_keys = fresh.optimizer_keys = "beta1 = 0.0\nbeta2 = 0.999\neps = 1e-10\nweight_decay = 0.1";
  TttConfig config = tiny_config();
  config.prefix_documents = 0;
  const double of_warm = run(warm, config).report.batches.back().adapters[0].drift;
  const double of_fresh = run(fresh, config).report.batches.back().adapters[0].drift;
  EXPECT_GT(of_warm, 1.3 * of_fresh);
}

TEST(TttScorer, TheCollapseIsSeenAndFallsBack) {
  TttConfig config = tiny_config();
  config.prefix_documents = 0;
  const std::size_t tokens = made_up_stream(kLengths).size();
  const std::vector<float> unreachable(tokens, 0.0F), easy(tokens, 100.0F);

  const std::vector<float> losses = run(tiny_options(), config).losses;
  config.on_collapse = OnCollapse::fallback;
  const TinyOutcome learned = run(tiny_options(), config, easy);
  EXPECT_EQ(learned.report.collapsed_at, -1);
  EXPECT_FALSE(learned.report.fell_back);
  EXPECT_EQ(learned.losses, losses);
  config.on_collapse = OnCollapse::warn;
  const TinyOutcome warned = run(tiny_options(), config, unreachable);
  EXPECT_EQ(warned.report.collapsed_at, 0);
  EXPECT_FALSE(warned.report.fell_back);
  EXPECT_EQ(warned.losses, losses) << "a warning must not change the scores";

  config.on_collapse = OnCollapse::fallback;
  const TinyOutcome fallen = run(tiny_options(), config, unreachable);
  EXPECT_TRUE(fallen.report.fell_back);
  EXPECT_TRUE(fallen.report.batches[0].adapted);
  EXPECT_FALSE(fallen.report.batches[1].adapted);
  // After the first batch every score is that of adapters which never moved.
  TttRunner::Options frozen = tiny_options();
  frozen.lr = 0;
  const TinyOutcome plain = run(frozen, config);
  const DocumentPlan plan = plan_documents(made_up_stream(kLengths), 1, config);
  for (std::int64_t queue = 1; queue < plan.batches(); ++queue) {
    for (const auto& [first, last] : plan.ranges(plan.batch(queue))) {
      for (auto target = static_cast<std::size_t>(first); target < static_cast<std::size_t>(last); ++target)
        EXPECT_EQ(fallen.losses[target], plain.losses[target]);
    }
  }
}

TEST(TttScorer, ChunkSizesFollowTheLongestDocument) {
  TttConfig config = tiny_config();
  config.chunk_limits = {10, 20};
  config.chunk_sizes = {2, 4};
  const DocumentPlan plan = plan_documents(made_up_stream(kLengths), 1, config);
  for (const PlannedBatch& batch : plan.queue) {
    const std::int64_t longest = plan.targets(batch.documents.back());
    const std::int64_t expected = longest <= 10 ? 2 : longest <= 20 ? 4 : 5;
    EXPECT_EQ(batch.chunk_tokens, expected) << longest;
    EXPECT_EQ(batch.chunks, (longest + expected - 1) / expected);
  }
  EXPECT_EQ(run(tiny_options(), config).report.sums.tokens, made_up_stream(kLengths).size() - 1);
}

TEST(TttScorer, Bf16ScoresAreNearF32) {
  TttRunner::Options options = tiny_options();
  const TinyOutcome exact = run(options, tiny_config());
  options.compute = MLG_BF16;
  const TinyOutcome rounded = run(options, tiny_config());
  EXPECT_NE(exact.losses, rounded.losses);
  EXPECT_NEAR(exact.report.sums.mean_loss_nats(), rounded.report.sums.mean_loss_nats(), 0.05);
}

TEST(TttScorer, WindowsOfOneTokenAndDocumentsOfTwo) {
  TinyRun how{.tokens = {1, 5, 1, 6, 7, 1}};
  how.config.chunk_tokens = how.config.context_tokens = 1;
  how.config.prefix_documents = 0;
  EXPECT_EQ(run_tiny(how).report.sums.tokens, 5u);
}

TEST(TttScorer, RefusesPluginsThatDoNotOfferWhatIsAskedFor) {
  TttRunner runner(tiny_options());
  const TttConfig config = tiny_config();
  const std::vector<std::uint16_t> tokens = made_up_stream(kLengths);
  const auto refusal = [&](const TttPlugin& adapters, const TttPlugin& base,
                           std::int64_t row_tokens) -> std::string {
    const TttSetup setup{config,
                         adapters,
                         runner.optimizer(),
                         1e-3,
                         &base,
                         runner.base_optimizer(),
                         row_tokens,
                         *runner.options().draws};
    return refusal_of([&] { TttScorer ttt(runner.model(), setup, {tokens, 1, nullptr, {}}); });
  };
  EXPECT_EQ(refusal(runner.adapters(), *runner.base(), 8), "");
  EXPECT_TRUE(contains(refusal(*runner.base(), *runner.base(), 8), "[ttt.adapters]"));
  EXPECT_TRUE(contains(refusal(runner.adapters(), runner.adapters(), 8), "[ttt.base]"));
  // A row longer than a chunk of [ttt.base].
  EXPECT_TRUE(contains(refusal(runner.adapters(), *runner.base(), 17), "chunks of at least one row"));
}

TEST(TttScorer, RefusesAStreamWithoutDocuments) {
  const std::vector<std::uint16_t> tokens = {5, 6, 7, 8};
  EXPECT_THROW(plan_documents(tokens, 1, tiny_config()), Error);
}

}  // namespace
}  // namespace mulligan::ttt_run_test
