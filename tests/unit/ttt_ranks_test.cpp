// Test-time training shared by ranks, which are threads here: what they score is what one process with as many lanes scores.
#include <gtest/gtest.h>

#include <memory>
#include <mutex>

#include "framework/run/parameter_store.h"
#include "framework/ttt/ttt_json.h"
#include "framework/ttt/ttt_scorer.h"
#include "tests/support/thread_world.h"
#include "tests/unit/ttt_world.h"

namespace mulligan::ttt_ranks_test {
namespace {

const std::vector<int> kLengths = {9, 14, 31, 7, 22, 12, 18, 27, 5, 16, 11, 8, 21, 13, 6, 25, 10, 19, 17, 15};

class Events : public TttListener {
 public:
  void on_event(const TttEvent& event) override {
    std::string line =
        fmt::format("{} {} {} {}:", word_of(event.kind), event.queue, event.batch, event.chunk);
    line += event.chosen;
    for (const int document : event.documents) line += fmt::format(" {}", document);
    lines.push_back(line);
  }
  void on_batch(const TttBatchReport& batch) override { batches.push_back(batch.queue); }
  std::vector<std::string> lines;
  std::vector<std::int64_t> batches;
};

struct Outcome {
  TttReport report;
  std::vector<float> losses;
  std::vector<std::string> events;
  std::vector<std::int64_t> batches;
};

struct Options {
  TttRunner::Options runner = tiny_options();
  TttConfig config;
  std::int64_t lanes = 1;
  std::vector<float> reference;
};

Outcome run_rank(const Options& options, Communicator* communicator) {
  const std::vector<std::uint16_t> tokens = made_up_stream(kLengths);
  TttRunner runner(options.runner);
  runner.set_random_parameters(3);
  refresh_copies(runner.model().store, runner.model().layouts);
  TttSetup setup = runner.setup(options.config);
  setup.lanes = options.lanes;
  setup.communicator = communicator;
  Events events;
  const bool first = !communicator || communicator->rank() == 0;
  TttScorer run(runner.model(), setup, {tokens, 1, nullptr, options.reference}, first ? &events : nullptr);
  Outcome outcome{run.run(), {}, {}, {}};
  outcome.losses = run.book().losses();
  outcome.events = events.lines;
  outcome.batches = events.batches;
  return outcome;
}

// Of each rank.
std::vector<Outcome> run(const Options& options, int ranks) {
  std::vector<Outcome> outcomes(static_cast<std::size_t>(ranks));
  if (ranks == 1) return {run_rank(options, nullptr)};
  ThreadWorld(ranks).run([&](int rank, Communicator& communicator) {
    outcomes[static_cast<std::size_t>(rank)] = run_rank(options, &communicator);
  });
  return outcomes;
}

Options with_lanes(std::int64_t lanes) {
  Options options;
  options.config = tiny_config();
  options.config.batch_documents = 2;
  options.config.prefix_documents = 8;
  options.config.phases = 2;
  options.config.audit = "audit.jsonl";
  options.lanes = lanes;
  return options;
}

void expect_the_same(const Outcome& alone, const Outcome& shared) {
  EXPECT_EQ(alone.losses, shared.losses);
  EXPECT_EQ(alone.report.sums.loss_nats, shared.report.sums.loss_nats);
  EXPECT_EQ(alone.report.sums.tokens, shared.report.sums.tokens);
  ASSERT_EQ(alone.report.batches.size(), shared.report.batches.size());
  for (std::size_t i = 0; i < alone.report.batches.size(); ++i) {
    EXPECT_EQ(alone.report.batches[i].running.loss_nats, shared.report.batches[i].running.loss_nats);
    ASSERT_EQ(alone.report.batches[i].adapters.size(), shared.report.batches[i].adapters.size());
    for (std::size_t n = 0; n < alone.report.batches[i].adapters.size(); ++n)
      EXPECT_EQ(alone.report.batches[i].adapters[n].norm, shared.report.batches[i].adapters[n].norm);
  }
  ASSERT_EQ(alone.report.phases.size(), shared.report.phases.size());
  for (std::size_t i = 0; i < alone.report.phases.size(); ++i) {
    ASSERT_EQ(alone.report.phases[i].steps.size(), shared.report.phases[i].steps.size());
    for (std::size_t n = 0; n < alone.report.phases[i].steps.size(); ++n)
      EXPECT_EQ(alone.report.phases[i].steps[n].loss_nats, shared.report.phases[i].steps[n].loss_nats);
  }
  ASSERT_EQ(alone.report.bins.size(), shared.report.bins.size());
  for (std::size_t i = 0; i < alone.report.bins.size(); ++i)
    EXPECT_EQ(alone.report.bins[i].score.loss_nats, shared.report.bins[i].score.loss_nats);
}

TEST(TttRanks, FourLanesScoreTheSameOnOneTwoThreeAndFourRanks) {
  const Options options = with_lanes(4);
  const Outcome alone = run(options, 1)[0];
  EXPECT_EQ(alone.report.phases.size(), 2u);
  for (const int ranks : {2, 3, 4}) {
    SCOPED_TRACE(ranks);
    const std::vector<Outcome> shared = run(options, ranks);
    for (const Outcome& outcome : shared) expect_the_same(alone, outcome);
    EXPECT_EQ(shared[0].report.ranks, ranks);
    EXPECT_EQ(shared[0].report.lanes, 4);
    // The first hears what the others did, in the same order, and tells every batch once.
    EXPECT_EQ(shared[0].events, alone.events);
    EXPECT_EQ(shared[0].batches, alone.batches);
    EXPECT_EQ(shared[0].report.checks.text(), alone.report.checks.text());
    EXPECT_TRUE(shared[1].events.empty());
  }
}

// A rule that follows the booked losses chooses the same on every rank.
TEST(TttRanks, AnAdaptiveRuleChoosesTheSameOnEveryRank) {
  Options options = with_lanes(4);
  const std::vector<float> record = run(options, 1)[0].losses;
  options.runner = tiny_options("rank = 3\nalpha = 6.0\nlr_decay = 0.7\npatience = 1");
  const Outcome alone = run(options, 1)[0];
  EXPECT_NE(alone.losses, record);
  for (const int ranks : {2, 4}) {
    const std::vector<Outcome> shared = run(options, ranks);
    for (const Outcome& outcome : shared) expect_the_same(alone, outcome);
    EXPECT_EQ(shared[0].events, alone.events);
  }
}

// With a score transform each lane is a text of its own, whichever rank works through it.
TEST(TttRanks, AScoreTransformKnowsTheLaneAlone) {
  for (const TransformOrder order : {TransformOrder::queue, TransformOrder::document, TransformOrder::file}) {
    Options options = with_lanes(4);
    options.runner.transform = "ngram_tilt";
    options.runner.transform_keys = "order = 2\nthreshold = 0.3\nboost = 1.5";
    options.runner.transform_order = order;
    const Outcome alone = run(options, 1)[0];
    EXPECT_NE(alone.report.untransformed.loss_nats, alone.report.sums.loss_nats);
    for (const int ranks : {2, 3}) {
      SCOPED_TRACE(ranks);
      for (const Outcome& outcome : run(options, ranks)) {
        expect_the_same(alone, outcome);
        EXPECT_EQ(outcome.report.untransformed.loss_nats, alone.report.untransformed.loss_nats);
      }
    }
  }
}

// Each lane has a chain of adapters of its own, so with warm start the lanes matter, as the record's ranks do.
TEST(TttRanks, WithWarmStartTheNumberOfLanesMatters) {
  Options one = with_lanes(1), four = with_lanes(4);
  one.config.prefix_documents = four.config.prefix_documents = 0;
  EXPECT_NE(run(one, 1)[0].losses, run(four, 1)[0].losses);
}

// Without warm start and training of the base model a batch depends on its place in the queue alone.
TEST(TttRanks, WithFreshAdaptersTheNumberOfLanesDoesNotMatter) {
  const auto fresh = [](std::int64_t lanes) {
    Options options = with_lanes(lanes);
    options.runner = tiny_options("rank = 3\nalpha = 6.0\nwarm_start_a = false");
    options.config.prefix_documents = 0;
    return options;
  };
  const Outcome one = run(fresh(1), 1)[0];
  EXPECT_EQ(one.losses, run(fresh(4), 1)[0].losses);
  EXPECT_EQ(one.losses, run(fresh(4), 3)[0].losses);
}

// The fallback is decided where all meet, from what all have scored.
TEST(TttRanks, TheFallbackIsDecidedAtAMeeting) {
  Options options = with_lanes(3);
  options.config.on_collapse = OnCollapse::fallback;
  options.reference.assign(made_up_stream(kLengths).size(), 0.0F);  // unbeatable
  const Outcome alone = run(options, 1)[0];
  EXPECT_TRUE(alone.report.fell_back);
  EXPECT_EQ(alone.report.collapsed_at, 0);
  EXPECT_TRUE(alone.report.phases.empty());
  const std::vector<Outcome> shared = run(options, 3);
  for (const Outcome& outcome : shared) expect_the_same(alone, outcome);
  EXPECT_EQ(shared[0].events, alone.events);
  // Up to the first meeting all had adapters, after it none.
  EXPECT_TRUE(alone.report.batches.front().adapted);
  EXPECT_FALSE(alone.report.batches.back().adapted);
}

// A rank whose scores must not be used ends the run on all of them, with its reason.
class Peeking : public TttScorer {
 public:
  using TttScorer::TttScorer;
  bool peeks = false;

 protected:
  void take_turn(Turn& turn) override {
    if (peeks) throw InvalidRun("a score has read a later token");
    TttScorer::take_turn(turn);
  }
};

TEST(TttRanks, AVoidRankVoidsTheRun) {
  const Options options = with_lanes(2);
  const std::vector<std::uint16_t> tokens = made_up_stream(kLengths);
  std::mutex mutex;
  int invalid_ranks = 0;
  ThreadWorld(2).run([&](int rank, Communicator& communicator) {
    TttRunner runner(options.runner);
    runner.set_random_parameters(3);
    refresh_copies(runner.model().store, runner.model().layouts);
    TttSetup setup = runner.setup(options.config);
    setup.lanes = 2;
    setup.communicator = &communicator;
    Peeking run(runner.model(), setup, {tokens, 1, nullptr, {}});
    run.peeks = rank == 1;
    try {
      run.run();
    } catch (const InvalidRun& reason) {
      EXPECT_STREQ(reason.what(), "a score has read a later token");
      const std::lock_guard lock(mutex);
      ++invalid_ranks;
    }
  });
  EXPECT_EQ(invalid_ranks, 2);
}

}  // namespace
}  // namespace mulligan::ttt_ranks_test
