// What the check of scores looks at, which chance it states, and the floor below which a score cannot be.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "framework/ttt/causality.h"
#include "framework/ttt/score_book.h"

namespace mulligan::ttt_audit_test {
namespace {

constexpr std::int64_t kVocabulary = 50;

// Two documents with windows of 12 tokens, whose last 8 are scored.
const std::vector<SuffixCheck::Window> kWindows = {{0, 0, 12, 4, 8}, {12, 8, 12, 4, 8}};
std::vector<std::int32_t> tokens() {
  std::vector<std::int32_t> list(24);
  for (std::size_t i = 0; i < list.size(); ++i) list[i] = static_cast<std::int32_t>(i);
  return list;
}

// By document, how many scores were kept in each pass: the last of them was made without its own token.
std::vector<std::multiset<int>> cuts_of(const SuffixCheck::Sample& sample) {
  std::vector<std::multiset<int>> cuts(kWindows.size());
  const std::vector<std::int32_t> real = tokens();
  for (const SuffixCheck::Pass& pass : sample.passes) {
    for (std::size_t window = 0; window < kWindows.size(); ++window) {
      const int kept = static_cast<int>(
          std::ranges::count_if(pass.scores, [&](std::size_t place) { return place / 8 == window; }));
      cuts[window].insert(kept);
      for (int i = 0; i < 12; ++i) {
        const std::size_t at = window * 12 + static_cast<std::size_t>(i);
        EXPECT_EQ(pass.tokens[at] == real[at], i < 4 + kept) << "token " << i;
      }
    }
  }
  return cuts;
}

TEST(TttAudit, AFullOneTakesEveryTurnAtEveryCut) {
  SuffixCheck check(3, 6, kVocabulary, 7, true);
  for (int turn = 0; turn < 3; ++turn) {
    const auto sample = check.next(tokens(), kWindows);
    ASSERT_TRUE(sample);
    for (const auto& cuts : cuts_of(*sample)) EXPECT_EQ(cuts, (std::multiset<int>{1, 2, 3, 4, 5, 6, 7}));
  }
  EXPECT_EQ(check.turns(), 3);
  EXPECT_EQ(check.cuts(), 3 * 2 * 7);
}

TEST(TttAudit, ASampledOneTakesDifferentCuts) {
  SuffixCheck check(400, 800, kVocabulary, 7);
  for (int turn = 0; turn < 400; ++turn) {
    const auto sample = check.next(tokens(), kWindows);
    if (!sample) continue;
    EXPECT_GE(sample->passes.size(), 2u);
    for (const auto& cuts : cuts_of(*sample))
      EXPECT_EQ(std::set<int>(cuts.begin(), cuts.end()).size(), cuts.size());
  }
  EXPECT_GE(check.turns(), 8);
  EXPECT_LE(check.turns(), 24);
  EXPECT_GE(check.cuts(), 136);
  EXPECT_EQ(check.all_turns(), 400);
}

// Turns of a run whose documents end one after the other: no window may be checked much less than another, and the
// turns of the last document, one window each, not by a pass for each cut that is missing.
TEST(TttAudit, ASampledOneDealsItsCutsToWindows) {
  const std::vector<std::size_t> windows_of_turns = {7, 6, 6, 4, 1, 1, 1, 1, 1, 1};
  std::vector<SuffixCheck::Window> windows;
  for (std::size_t window = 0; window < 7; ++window)
    windows.push_back({window * 64, window * 40, 64, 24, 40});
  const std::vector<std::int32_t> list(windows.size() * 64, 3);
  SuffixCheck check(10, 29, kVocabulary, 7);
  for (const std::size_t active : windows_of_turns) {
    for (std::size_t window = 0; window < windows.size(); ++window)
      windows[window].chunk_length = window < active ? 40 : 0;  // finished documents keep a window of zeros
    const auto sample = check.next(list, windows);
    ASSERT_TRUE(sample);
    EXPECT_GE(sample->passes.size(), 3u) << active;  // 136 / 29 = 4.7, rounded up as long as cuts are missing
    EXPECT_LE(sample->passes.size(), 5u) << active;
  }
  EXPECT_GE(check.cuts(), 136);
  EXPECT_LE(check.cuts(), 29 * 5);
}

// Where windows have too few cuts, what is missing falls to those behind them, also behind the last that was planned.
TEST(TttAudit, ASampledOneMakesUpForShortWindows) {
  const std::vector<SuffixCheck::Window> brief = {{0, 0, 12, 9, 3}, {12, 3, 12, 9, 3}};
  SuffixCheck check(12, 24, kVocabulary, 7);
  for (int turn = 0; turn < 6; ++turn) EXPECT_EQ(check.next(tokens(), brief)->passes.size(), 2u);
  for (int turn = 0; turn < 6; ++turn) EXPECT_EQ(check.next(tokens(), kWindows)->passes.size(), 7u);
  EXPECT_EQ(check.cuts(), 6 * 2 * 2 + 6 * 2 * 7);
  for (int turn = 0; turn < 2; ++turn) EXPECT_EQ(check.next(tokens(), kWindows)->passes.size(), 7u);
  EXPECT_EQ(check.cuts(), 136);
  EXPECT_EQ(check.next(tokens(), kWindows)->passes.size(), 2u);
}

// Had every stretch of turns one that is checked, all turns behind it were safe for a cheat.
TEST(TttAudit, AnEarlierCheckSaysNothingOfTheTurnsBehindIt) {
  constexpr int stretch = 100, stretches = 100;
  SuffixCheck check(stretch * stretches, 2 * stretch * stretches, kVocabulary, 7);
  int none = 0, several = 0, turns = 0;
  for (int i = 0; i < stretches; ++i) {
    int taken = 0;
    for (int turn = 0; turn < stretch; ++turn) taken += check.next(tokens(), kWindows) ? 1 : 0;
    none += taken == 0 ? 1 : 0;
    several += taken > 1 ? 1 : 0;
    turns += taken;
  }
  EXPECT_GT(none, 15);     // 37 of 100 are to be expected
  EXPECT_GT(several, 10);  // 26
  EXPECT_NEAR(turns, 100, 35);
}

// A cheat in one score of X is missed by n looks with probability (1 - 1/X)^n.
TEST(TttAudit, TheChanceThatIsStatedIsTheChance) {
  for (const std::int64_t looks : {1, 8, 136, 8400}) {
    const double rate = 1 / found_one_in(looks);
    EXPECT_NEAR(std::pow(1 - rate, static_cast<double>(looks)), 0.01, 1e-9) << looks;
  }
  EXPECT_GT(found_one_in(136), 29);
}

std::vector<std::uint16_t> text(int period) {
  std::vector<std::uint16_t> tokens;
  std::uint32_t state = 1;
  for (int i = 0; i < 4000; ++i) {
    if (period > 0 && i >= period) {
      tokens.push_back(tokens[static_cast<std::size_t>(i - period)]);
      continue;
    }
    state = state * 1664525u + 1013904223u;
    tokens.push_back(static_cast<std::uint16_t>((state >> 16) % kVocabulary));
  }
  return tokens;
}

std::string floor_of(const std::vector<std::uint16_t>& tokens, double score_nats, double plain_nats) {
  ScoreBook book(tokens, nullptr);
  for (std::size_t i = 1; i < tokens.size(); ++i)
    book.enter(static_cast<std::int64_t>(i), static_cast<float>(score_nats));
  const std::vector<float> plain(tokens.size(), static_cast<float>(plain_nats));
  return floor_problem(book, tokens, plain_nats > 0 ? plain : std::vector<float>(), kVocabulary);
}

TEST(TttAudit, ATextThatDoesNotRepeatItselfHasAFloor) {
  const auto tokens = text(0);
  EXPECT_EQ(floor_of(tokens, 3.5, 3.9), "");
  EXPECT_EQ(floor_of(tokens, 2.0, 3.9), "");  // above half
  EXPECT_NE(floor_of(tokens, 0.01, 3.9), "");
  EXPECT_NE(floor_of(tokens, 0.01, 0), "") << "without a plain score";
}

// What repeats itself can be learnt: a good score is no reason for suspicion.
TEST(TttAudit, ATextThatRepeatsItselfHasALowOne) {
  const auto tokens = text(100);
  double compressed = 0;
  for (const float nats : compressed_nats(tokens, kVocabulary)) compressed += static_cast<double>(nats);
  EXPECT_LT(compressed / 4000, 0.4);
  EXPECT_EQ(floor_of(tokens, 0.25, 3.9), "");
  EXPECT_NE(floor_of(tokens, 0.001, 3.9), "");
}

}  // namespace
}  // namespace mulligan::ttt_audit_test
