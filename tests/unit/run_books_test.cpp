// What a run books: its ledger against the budgets, the seconds of its phases, and what its benchmark track asks for.
#include "framework/run/run_ledger.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "framework/core/error.h"
#include "framework/run/ledger.h"
#include "framework/run/training_data.h"
#include "tests/support/sentence.h"
#include "tests/unit/config_testing.h"

namespace mulligan::run_books_test {
namespace {

LedgerEntry trained(double seconds) {
  return {LedgerStage::train,
          {{"setup", 3}, {"train", seconds}, {"evaluate", 20}},
          {},
          {{"before quantisation", {{2, 0.96, 100, 300, 20}, 200}}}};
}
LedgerEntry quantised(std::uint64_t artifact, std::uint64_t source) {
  LedgerEntry entry{LedgerStage::quantize,
                    {{"calibrate", 8}, {"quantise", 5}, {"compress", 2}},
                    {{"artifact", artifact}},
                    {}};
  if (source > 0) entry.bytes.emplace_back("code_source", source);
  return entry;
}
LedgerEntry adapted(double seconds) {
  return {LedgerStage::ttt,
          {{"ttt_setup", 1}, {"ttt_plain", 10}, {"ttt", seconds}},
          {},
          {{"after quantisation", {{2.1, 1.01, 100, 300, 10}, 210}},
           {"after test-time training", {{1.9, 0.91, 100, 300, seconds}, 190}}}};
}

RunLedger whole(double train, std::uint64_t artifact, std::uint64_t source, double ttt) {
  RunLedger ledger;
  ledger.book(trained(train));
  ledger.book(quantised(artifact, source));
  ledger.book(adapted(ttt));
  return ledger;
}

std::string refusal(const LedgerConfig& limits, const RunLedger& ledger) {
  return refusal_of(ExitCode::run_failed, [&] { require_limits(limits, ledger); });
}

constexpr LedgerConfig kLimits{LedgerRules::strict, 100, 60, 1000};

TEST(RunLedger, CalibrationCountsAsTraining) {
  EXPECT_EQ(refusal(kLimits, whole(92, 600, 400, 49)), "");  // each budget used to its last second and byte
  EXPECT_TRUE(contains(refusal(kLimits, whole(92.5, 600, 400, 49)), "train + calibrate took 100.50 s",
                       "ledger.train_seconds = 100", "refused as a record"));
  // Quantising and compressing read no training data, and validations on the way are no evaluation.
  RunLedger ledger;
  LedgerEntry entry = trained(99);
  for (const char* aside : {"validate", "evaluate_unfinished"}) entry.seconds.emplace_back(aside, 1000.0);
  ledger.book(entry);
  LedgerEntry without_calibration = quantised(600, 400);
  without_calibration.seconds[0].second = 0;
  ledger.book(without_calibration);
  EXPECT_EQ(refusal(kLimits, ledger), "");
}

TEST(RunLedger, EveryBrokenBudgetIsNamed) {
  const RunLedger ledger = whole(200, 601, 400, 50);
  const std::vector<std::string> broken = broken_limits(kLimits, ledger);
  ASSERT_EQ(broken.size(), 3u);
  EXPECT_TRUE(contains(broken[0], "train + calibrate"));
  EXPECT_TRUE(contains(broken[1], "ttt_setup + ttt_plain + ttt took 61.00 s, 1.00 s more"));
  EXPECT_TRUE(contains(broken[2], "artifact + counted source took 1001 bytes, 1 bytes more"));
  const std::string sentence = refusal(kLimits, ledger);
  for (const std::string& one : broken) EXPECT_TRUE(contains(sentence, one));
}

TEST(RunLedger, OpenRulesRefuseNothingUnsetLimitsAreNoneAndCodeIsCounted) {
  EXPECT_TRUE(contains(refusal(kLimits, whole(92, 600, 0, 40)), "code"));
  LedgerConfig open = kLimits;
  open.rules = LedgerRules::open;
  EXPECT_EQ(refusal(open, whole(200, 601, 400, 50)), "");
  EXPECT_EQ(broken_limits(open, whole(200, 601, 400, 50)).size(), 3u);
  EXPECT_EQ(refusal({LedgerRules::strict, 0, 0, 0}, whole(1e6, 1u << 30, 0, 1e6)), "");
}

// A new artifact makes the score of the old one meaningless, a new training both.
TEST(RunLedger, BookingAStageAgainDropsWhatCameAfterIt) {
  RunLedger ledger = whole(90, 600, 400, 40);
  ledger.book(quantised(500, 400));
  EXPECT_FALSE(ledger.has(LedgerStage::ttt));
  EXPECT_EQ(ledger.bytes("artifact"), 500u);
  EXPECT_EQ(ledger.seconds("ttt"), 0);
  EXPECT_EQ(ledger.seconds("train"), 90);
  ledger.book(trained(70));
  EXPECT_FALSE(ledger.has(LedgerStage::quantize));
  EXPECT_EQ(ledger.seconds("train"), 70);
}

TEST(RunLedger, IsReadAsItWasWritten) {
  const test_support::ScratchFolder folder;
  RunLedger ledger = whole(90.123456789, 600, 400, 40);
  LedgerEntry entry = ledger.entries().back();
  entry.scores.back().second.val_bpb = std::numeric_limits<double>::quiet_NaN();
  ledger.book(entry);
  ledger.write(folder.path(""), kLimits);
  const RunLedger read = RunLedger::read(folder.path(""));
  ASSERT_EQ(read.entries().size(), 3u);
  EXPECT_EQ(read.seconds("train"), 90.123456789);
  EXPECT_EQ(read.bytes("code_source"), 400u);
  EXPECT_EQ(read.entries()[0].scores[0].first, "before quantisation");
  EXPECT_EQ(read.entries()[0].scores[0].second.val_bpb, 0.96);
  EXPECT_EQ(read.entries()[0].scores[0].second.tokens, 100u);
  EXPECT_TRUE(std::isnan(read.entries()[2].scores[1].second.val_bpb));
  EXPECT_TRUE(RunLedger::read(folder.path("elsewhere")).entries().empty());
}

// Damaged texts, and amounts that cannot be.
TEST(RunLedger, ADamagedFileIsRefused) {
  const auto entry = [](const char* amounts) {
    return fmt::format(R"({{"stages": [{{"stage": "train", {}, "scores": {{}}}}]}})", amounts);
  };
  const std::string deep = "{\"stages\": " + std::string(200'000, '[') + std::string(200'000, ']') + "}";
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[]"),
        std::string(R"({"stages": [{"stage": "sleep"}]})"), std::string(R"({"stages": 5})"), deep,
        entry(R"("seconds": {"train": -1.0}, "bytes": {})"),
        entry(R"("seconds": {"train": null}, "bytes": {})"),
        entry(R"("seconds": {}, "bytes": {"artifact": -5})"),
        entry(R"("seconds": {}, "bytes": {"artifact": 0.5})")}) {
    const test_support::ScratchFolder folder;
    folder.write("ledger.json", text);
    EXPECT_TRUE(refuses([&] { RunLedger::read(folder.path("")); }, ExitCode::bad_data, "ledger.json"));
  }
}

TEST(RunLedger, AnArtifactThatWasScoredCountsWhereverItLies) {
  LedgerEntry scored = adapted(10);
  scored.bytes = {{"artifact_scored", 16000}};
  RunLedger alone;
  alone.book(scored);
  EXPECT_TRUE(contains(refusal(kLimits, alone), "16000 bytes"));
  EXPECT_TRUE(contains(refusal({LedgerRules::strict, 0, 0, 20000}, alone), "code"));
  RunLedger other = whole(90, 600, 400, 40);
  other.book(scored);
  EXPECT_TRUE(contains(refusal({LedgerRules::strict, 0, 0, 20000}, other),
                       "16000 bytes, but the one that the ledger books 600"));
}

// A score says how many tokens its validation set has, also after it was written and read.
TEST(RunLedger, AScoreOfAPartOfTheSetIsNoRecord) {
  ASSERT_EQ(trained(90).scores.front().second.tokens, 100u);
  const test_support::ScratchFolder folder;
  for (const bool read : {false, true}) {
    const auto refused = [&](std::uint64_t set) {
      LedgerEntry entry = trained(90);
      entry.scores.front().second.data.validation.tokens = set;
      RunLedger ledger;
      ledger.book(entry);
      if (!read) return refusal(kLimits, ledger);
      ledger.write(folder.path(""), kLimits);
      return refusal(kLimits, RunLedger::read(folder.path("")));
    };
    EXPECT_EQ(refused(101), "");
    EXPECT_TRUE(contains(refused(102), "1 of the validation set were not scored"));
  }
}

TEST(RunLedger, TheTableHoldsScoresAndBudgets) {
  const std::string table = ledger_table(kLimits, whole(93, 600, 400, 40));
  const auto before = table.find("before quantisation"), after = table.find("after quantisation"),
             last = table.find("after test-time training");
  EXPECT_LT(before, after);
  EXPECT_LT(after, last);
  EXPECT_NE(last, std::string::npos);
  EXPECT_TRUE(contains(table, "val_bpb 0.91000", "101.00 s of 100.00 s   OVER BUDGET",
                       "1000 bytes of 1000 bytes   within budget"));
}

struct FakeClock {
  double now = 100;
  SecondsClock clock() {
    return [this] { return now; };
  }
};

TEST(Ledger, EverySecondIsBookedToOnePhase) {
  FakeClock time;
  Ledger ledger(time.clock());
  EXPECT_EQ(ledger.enter("setup"), "");
  time.now += 2;
  EXPECT_EQ(ledger.enter("train"), "setup");
  time.now += 5;
  EXPECT_EQ(ledger.enter("evaluate"), "train");
  time.now += 3;
  ledger.enter("train");
  time.now += 1;
  ledger.close();
  using Phases = std::vector<std::pair<std::string, double>>;
  EXPECT_EQ(ledger.phases(), (Phases{{"setup", 2}, {"train", 6}, {"evaluate", 3}}));
  ledger.enter("evaluate");
  time.now += 4;
  ledger.rename("evaluate", "evaluate_unfinished");  // it will be made again
  time.now += 1;
  ledger.close();
  EXPECT_EQ(ledger.phases(), (Phases{{"setup", 2}, {"train", 6}, {"evaluate_unfinished", 8}}));
}

// A budget that runs on `time`.
Budget budget_of(FakeClock& time, double seconds, double reserve, std::int64_t steps) {
  TrainConfig train;
  train.budget_seconds = seconds;
  train.reserve_seconds = reserve;
  train.steps = steps;
  Budget budget(train, time.clock());
  budget.resume();
  return budget;
}

TEST(Budget, FractionIsElapsedOverBudgetLessReserve) {
  FakeClock time;
  Budget budget = budget_of(time, 600, 100, 0);
  EXPECT_EQ(budget.fraction(0), 0);
  time.now += 125;
  EXPECT_DOUBLE_EQ(budget.fraction(3), 0.25);
  budget.pause();
  time.now += 1000;  // a validation: does not count
  EXPECT_DOUBLE_EQ(budget.fraction(3), 0.25);
  budget.resume();
  time.now += 375;
  EXPECT_DOUBLE_EQ(budget.fraction(4), 1);
  EXPECT_TRUE(budget.ended(budget.fraction(4), 4));
  time.now += 500;
  EXPECT_EQ(budget.fraction(5), 1);
}

TEST(Budget, EndsBeforeAStepThatWouldPassIt) {
  FakeClock time;
  Budget budget = budget_of(time, 10, 0, 0);
  for (int step = 1; step <= 3; ++step) {
    EXPECT_FALSE(budget.ended(budget.fraction(step - 1), step - 1)) << step;
    time.now += 3;
    budget.mark_steps();
  }
  // 9 s spent, the next step would end at 12 s.
  EXPECT_TRUE(budget.ended(budget.fraction(3), 3));
}

TEST(Budget, StepsBoundARunWithAndWithoutAClock) {
  FakeClock time;
  const Budget steps = budget_of(time, 0, 0, 8), both = budget_of(time, 1000, 0, 8);
  time.now += 1;
  EXPECT_EQ(steps.fraction(2), 0.25);
  EXPECT_FALSE(steps.ended(steps.fraction(7), 7));
  EXPECT_TRUE(steps.ended(steps.fraction(8), 8));
  EXPECT_DOUBLE_EQ(both.fraction(7), 0.001);
  EXPECT_TRUE(both.ended(both.fraction(8), 8));
}

DataIdentity published(std::size_t shards) {
  DataIdentity data;
  for (std::size_t i = 1; i <= shards; ++i)
    data.train.shards.push_back({fmt::format("fineweb_train_{:06}.bin", i), 100'000'000, "a"});
  data.validation.shards.push_back({"fineweb_val_000000.bin", 100'000'000, "b"});
  return data;
}

std::string arena_refusal(const DataIdentity& data, int ranks) {
  RunConfig config;
  require_arena(config, data, ranks);  // without a track nothing is asked
  config.arena.track = ArenaTrack::modded3;
  return refusal_of([&] { require_arena(config, data, ranks); });
}

TEST(RunArenaTrack, RanksFilesAndBatch) {
  for (const int ranks : {1, 2, 4, 8}) EXPECT_EQ(arena_refusal(published(3), ranks), "");
  for (const int ranks : {3, 16})
    EXPECT_TRUE(contains(arena_refusal(published(3), ranks), "1, 2, 4 or 8 ranks"));
  RunConfig config;
  EXPECT_NO_THROW(require_arena_batch(config, 2));
  config.arena.track = ArenaTrack::modded3;
  EXPECT_NO_THROW(require_arena_batch(config, 1));
  EXPECT_THROW(require_arena_batch(config, 0.5), Error);
  DataIdentity data = published(3);
  data.train.shards[1].name = "fineweb_train_000003.bin";
  EXPECT_TRUE(contains(arena_refusal(data, 1),
                       "'fineweb_train_000003.bin' has 100000000 tokens, but arena.track requires "
                       "'fineweb_train_000002.bin'"));
  data = published(3);
  data.train.shards[2].tokens = 524289;
  EXPECT_TRUE(contains(arena_refusal(data, 1), "has 524289 tokens"));
  data = published(103);
  data.train.shards[102].tokens = 5'000'000;  // the last published file
  EXPECT_EQ(arena_refusal(data, 1), "");
  data = published(1);
  data.validation.shards.push_back({"fineweb_val_000001.bin", 100'000'000, "c"});
  EXPECT_TRUE(contains(arena_refusal(data, 1), "2 validation shards"));
  data.validation.shards.clear();
  EXPECT_TRUE(contains(arena_refusal(data, 1), "0 validation shards"));
}

}  // namespace
}  // namespace mulligan::run_books_test
