// Lanes of test-time training: their plan, and that scores do not depend on the number of ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>
#include <set>

#include "framework/core/file.h"
#include "framework/ttt/ttt_json.h"
#include "framework/ttt/ttt_outputs.h"
#include "framework/ttt/ttt_scorer.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/sentence.h"
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

struct Outcome : TinyOutcome {
  std::vector<std::string> events;
  std::vector<std::int64_t> batches;
};

Outcome run_rank(TinyRun how, Communicator* communicator) {
  Events events;
  how.tokens = made_up_stream(kLengths);
  how.communicator = communicator;
  if (!communicator || communicator->rank() == 0) how.listener = &events;
  return {run_tiny(how), events.lines, events.batches};
}

// Of each rank.
std::vector<Outcome> run(const TinyRun& options, int ranks) {
  std::vector<Outcome> outcomes(static_cast<std::size_t>(ranks));
  if (ranks == 1) return {run_rank(options, nullptr)};
  ThreadWorld(ranks).run([&](int rank, Communicator& communicator) {
    outcomes[static_cast<std::size_t>(rank)] = run_rank(options, &communicator);
  });
  return outcomes;
}

TinyRun with_lanes(std::int64_t lanes) {
  TinyRun options{.lanes = lanes};
  options.config.batch_documents = 2;
  options.config.prefix_documents = 8;
  options.config.phases = 2;
  options.config.audit = "audit.jsonl";
  return options;
}

// All that a report says but the seconds.
std::string text_of(const TttReport& report) {
  Json json = report;
  json["sums"] = report.sums;
  json["bins"] = report.bins;
  for (const char* list : {"batches", "phases"}) {
    for (Json& entry : json[list]) entry.erase("seconds");
  }
  return json.dump();
}

void expect_the_same(const Outcome& alone, const Outcome& shared) {
  EXPECT_EQ(alone.losses, shared.losses);
  EXPECT_EQ(text_of(alone.report), text_of(shared.report));
}

// Also by a rule that follows the booked losses, and with score transforms, for which each lane is a text of its own.
TEST(TttRanks, FourLanesScoreTheSameOnOneTwoThreeAndFourRanks) {
  std::vector<TinyRun> ways(5, with_lanes(4));
  ways[1].options = tiny_options("rank = 3\nalpha = 6.0\nlr_decay = 0.7\npatience = 1");
  for (std::size_t i = 2; i < ways.size(); ++i) {
    ways[i].options.transform = "ngram_tilt";
    ways[i].options.transform_keys = "order = 2\nthreshold = 0.3\nboost = 1.5";
    ways[i].options.transform_order = static_cast<TransformOrder>(i - 2);
  }
  std::vector<float> plain;
  for (const TinyRun& options : ways) {
    const Outcome alone = run(options, 1)[0];
    EXPECT_EQ(alone.report.phases.size(), 2u);
    EXPECT_NE(alone.losses, plain);
    if (plain.empty()) plain = alone.losses;
    for (const int ranks : {2, 3, 4}) {
      SCOPED_TRACE(fmt::format("{} {} ranks {}", options.options.adapters, options.options.transform, ranks));
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
}

// Each lane has a chain of adapters of its own, so with warm start the lanes matter, as the record's ranks do. Without
// warm start and training of the base model a batch depends on its place in the queue alone.
TEST(TttRanks, TheNumberOfLanesMattersWithWarmStartAlone) {
  for (const bool warm : {true, false}) {
    const auto losses = [&](std::int64_t lanes, int ranks) {
      TinyRun options = with_lanes(lanes);
      options.options = tiny_options(fmt::format("rank = 3\nalpha = 6.0\nwarm_start_a = {}", warm));
      options.config.prefix_documents = 0;
      return run(options, ranks)[0].losses;
    };
    EXPECT_EQ(losses(1, 1) == losses(4, 1), !warm);
    if (!warm) {
      EXPECT_EQ(losses(1, 1), losses(4, 3));
    }
  }
}

// The fallback is decided where all meet, from what all have scored.
TEST(TttRanks, TheFallbackIsDecidedAtAMeeting) {
  TinyRun options = with_lanes(3);
  options.config.on_collapse = OnCollapse::fallback;
  options.without.assign(made_up_stream(kLengths).size(), 0.0F);  // unbeatable
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

// A run is killed after its lanes have met, and continues from any state before: nothing is told twice.
TEST(TttRanks, TheLogOfAContinuedRunIsThatOfOneThatWasNot) {
  TinyRun options = with_lanes(2);
  options.config.on_collapse = OnCollapse::warn;
  options.tokens = made_up_stream(kLengths);
  options.without.assign(options.tokens.size(), 0.0F);
  const test_support::ScratchFolder folder;
  const TttOutputs::Files files{{}, folder / "audit.jsonl", nullptr};
  const auto logged = [&](const TttStanding* from, std::string& log) {
    TttOutputs outputs(files, options.config, from);
    options.listener = &outputs;
    options.from = from;
    TinyOutcome outcome = run_tiny(options);
    log = read_file(files.audit);
    return outcome.standings;
  };
  std::string whole, continued;
  const std::vector<TttStanding> standings = logged(nullptr, whole);
  EXPECT_EQ(standings.size(), 9u);
  EXPECT_TRUE(contains(whole, R"("event":"collapse")"));
  for (const TttStanding& standing : standings) {
    SCOPED_TRACE(standing.done.size());
    logged(&standing, continued);
    EXPECT_EQ(continued, whole);
  }
}

// A rank whose scores must not be used ends the run on all of them, with its reason.
class Peeking : public TttScorer {
 public:
  using TttScorer::TttScorer;

 protected:
  void take_turn(Turn&) override { throw InvalidRun("a score has read a later token"); }
};

TEST(TttRanks, AnInvalidRankEndsTheRunOfAll) {
  std::atomic<int> invalid_ranks = 0;
  ThreadWorld(2).run([&](int rank, Communicator& communicator) {
    TinyRun options = with_lanes(2);
    options.tokens = made_up_stream(kLengths);
    options.communicator = &communicator;
    try {
      static_cast<void>(rank == 1 ? run_tiny<Peeking>(options) : run_tiny(options));
    } catch (const InvalidRun& reason) {
      EXPECT_STREQ(reason.what(), "a score has read a later token");
      ++invalid_ranks;
    }
  });
  EXPECT_EQ(invalid_ranks.load(), 2);
}

const TttConfig record_config = [] {
  TttConfig config;
  config.batch_documents = 64;
  config.prefix_documents = 2000;
  config.phases = 3;
  return config;
}();

// The longest 3,088 of 50,000 documents whose lengths are spread like those of web text: log-normal, 811 tokens on average, the
// longest 89,000. (With the longest below 60,000 the remainder batch is done sooner, and the first pause is one batch later.)
// 3,088 leaves the remainder of 16 that 50,000 leave.
DocumentPlan plan_like_the_record() {
  std::vector<std::uint16_t> tokens;
  for (int i = 0; i < 3088; ++i) {
    const double tail = (i + 0.5) / 50000;  // of documents that are longer
    const double t = std::sqrt(-2 * std::log(tail));
    // Abramowitz and Stegun 26.2.22, within 3e-3.
    const double z = t - (2.30753 + 0.27061 * t) / (1 + 0.99229 * t + 0.04481 * t * t);
    const auto length = static_cast<std::size_t>(std::exp(std::log(811) - 1.3 * 1.3 / 2 + 1.3 * z));
    tokens.push_back(1);
    tokens.insert(tokens.end(), length, 2);
  }
  return plan_documents(tokens, 1, record_config);
}

using Numbers = std::vector<std::int64_t>;

LanePlan lanes_of(const DocumentPlan& plan, std::int64_t lanes, const TttConfig& config = record_config) {
  return plan_lanes(plan, config.context_tokens, phase_boundaries(config, 50000), lanes);
}

// One lane, and what the record's log reports of eight ranks; the base model is trained on the same counts.
TEST(LanePlan, EightLanesPauseWhereTheRecordsRanksDid) {
  const DocumentPlan plan = plan_like_the_record();
  for (const std::int64_t lanes : {1, 3, 8, 16}) {
    Numbers boundaries, counts;
    std::int64_t documents = 0;
    for (const LanePlan::Stretch& stretch : lanes_of(plan, lanes).stretches) {
      for (std::int64_t queue = stretch.first; queue < stretch.end; ++queue)
        documents += plan.batch(queue).size();
      if (!stretch.boundary) continue;
      boundaries.push_back(*stretch.boundary);
      counts.push_back(documents);
    }
    EXPECT_EQ(boundaries, (Numbers{666, 1333, 2000})) << lanes;
    const std::map<std::int64_t, Numbers> reported = {{1, {720, 1360, 2000}}, {8, {1104, 1808, 2448}}};
    EXPECT_EQ(counts, reported.contains(lanes) ? reported.at(lanes) : counts);
  }
}

TEST(LanePlan, EveryBatchHasOneLaneAndOnePlaceInTheOrder) {
  const DocumentPlan plan = plan_like_the_record();
  for (const std::int64_t lanes : {1, 2, 5, 8, 200}) {
    const LanePlan dealt = lanes_of(plan, lanes);
    ASSERT_EQ(dealt.lanes.size(), plan.queue.size());
    EXPECT_GE(*std::ranges::min_element(dealt.lanes), 0);
    EXPECT_LT(*std::ranges::max_element(dealt.lanes), lanes);
    const std::vector<std::int64_t> order = dealt.order();
    EXPECT_EQ(std::set<std::int64_t>(order.begin(), order.end()).size(), plan.queue.size());
    // Stretch by stretch; in it lane by lane; in that along the queue.
    std::size_t place = 0;
    for (const LanePlan::Stretch& stretch : dealt.stretches) {
      EXPECT_LT(stretch.first, stretch.end);
      for (std::int64_t i = stretch.first; i < stretch.end; ++i, ++place) {
        EXPECT_GE(order[place], stretch.first);
        EXPECT_LT(order[place], stretch.end);
        if (i == stretch.first) continue;
        const auto lane = [&](std::size_t p) { return dealt.lanes[static_cast<std::size_t>(order[p])]; };
        EXPECT_TRUE(lane(place - 1) < lane(place) ||
                    (lane(place - 1) == lane(place) && order[place - 1] < order[place]));
      }
    }
    EXPECT_EQ(place, order.size());
  }
}

TEST(LanePlan, WithoutTrainingOfTheBaseModelThereIsOneStretch) {
  const DocumentPlan plan = plan_like_the_record();
  const LanePlan lanes = plan_lanes(plan, record_config.context_tokens, {}, 8);
  ASSERT_EQ(lanes.stretches.size(), 1u);
  EXPECT_FALSE(lanes.stretches[0].boundary);
  EXPECT_EQ(lanes.stretches[0].end, plan.batches());
}

// Two batches cannot reach three boundaries: one training follows one batch at most.
TEST(LanePlan, AtMostOneTrainingFollowsABatch) {
  TttConfig config = record_config;
  config.batch_documents = 3;
  config.prefix_documents = 6;
  const DocumentPlan plan = plan_documents(made_up_stream(std::vector<int>(6, 4)), 1, config);
  const LanePlan lanes = lanes_of(plan, 1, config);
  ASSERT_EQ(lanes.stretches.size(), 2u);
  EXPECT_EQ(lanes.stretches[0].boundary, 2);
  EXPECT_EQ(lanes.stretches[1].boundary, 4);
}

}  // namespace
}  // namespace mulligan::ttt_ranks_test
