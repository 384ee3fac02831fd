// Ranks that differ do not go on together.
#include "framework/ranks/roll_call.h"

#include <gtest/gtest.h>

#include "tests/support/rank_group.h"
#include "tests/support/sentence.h"

namespace mulligan::dist_roll_call_test {
namespace {

using Rule = Fact::Rule;
using test_support::Outcome;
using test_support::RankGroup;

RollCallEntry entry(const std::string& host, const std::string& digest, const std::string& device) {
  return {host,
          7,
          {{"host clock", host + digest, Rule::any},
           {"configuration", digest, Rule::equal},
           {"device", device, Rule::differs_on_host}}};
}

TEST(RollCall, RanksThatAgree) {
  EXPECT_EQ(first_difference({entry("a", "x", "g0"), entry("a", "x", "g1"), entry("b", "x", "g0")}),
            std::nullopt);
  EXPECT_EQ(first_difference({entry("a", "x", ""), entry("a", "x", "")}), std::nullopt);
  EXPECT_EQ(first_difference({}), std::nullopt);
}

TEST(RollCall, TheFirstDifferenceIsNamed) {
  EXPECT_EQ(first_difference({entry("a", "x", "g0"), entry("a", "x", "g0"), entry("b", "y\n", "g0")}),
            "rank 0 (a, process 7) and rank 2 (b, process 7) differ in configuration: 'x' and 'y\\n'; start "
            "all ranks with the same.");
  EXPECT_EQ(first_difference({entry("b", "x", "g0"), entry("a", "x", "g0"), entry("a", "x", "g0")}),
            "rank 1 (a, process 7) and rank 2 (a, process 7) have the "
            "same device, 'g0'; give each rank of a machine its own.");
  RollCallEntry shorter = entry("b", "x", "g0");
  shorter.facts.erase(shorter.facts.begin() + 1);
  EXPECT_NE(first_difference({entry("a", "x", "g0"), shorter})->find("configuration: 'x' and '(not set)'"),
            std::string::npos);
  EXPECT_NE(first_difference({shorter, entry("a", "x", "g0")})->find("configuration: '(not set)' and 'x'"),
            std::string::npos);
}

TEST(RollCall, EntriesReadBack) {
  const RollCallEntry one = entry("host", std::string(5000, 'x'),
                                  "g\0"
                                  "0");
  EXPECT_EQ(parse_roll_call_entry(roll_call_bytes(one)), one);
  EXPECT_NE(sentence_of([&] { parse_roll_call_entry(roll_call_bytes(one).substr(1)); }), "");
  EXPECT_NE(sentence_of([&] { parse_roll_call_entry(roll_call_bytes(one) + "x"); }), "");
}

TEST(RollCall, EveryRankThrowsTheSame) {
  const auto body = [](ControlChannel& channel) {
    call_roll(channel, {{"rank", std::to_string(channel.rank()), Rule::any}});
    call_roll(channel, {{"device", "g" + std::to_string(channel.rank()), Rule::differs_on_host}});
    call_roll(channel, {{"configuration", channel.rank() == 1 ? "b" : "a", Rule::equal}});
  };
  for (const Outcome& outcome : RankGroup(3).in_threads(body)) {
    EXPECT_EQ(outcome.code, static_cast<int>(ExitCode::bad_configuration));
    EXPECT_TRUE(contains(outcome.sentence, "differ in configuration: 'a' and 'b'"));
  }
}

TEST(RollCall, ADigestTellsWhatDiffersAndNoMore) {
  EXPECT_EQ(roll_call_digest(entry("a", "x", "")), roll_call_digest(entry("b", "x", "")));
  EXPECT_NE(roll_call_digest(entry("a", "x", "")), roll_call_digest(entry("a", "y", "")));
  EXPECT_EQ(roll_call_digest(entry("a", "x", "g0")), roll_call_digest(entry("a", "x", "g0")));
  EXPECT_NE(roll_call_digest(entry("a", "x", "g0")), roll_call_digest(entry("b", "x", "g0")));
  for (const Outcome& outcome : RankGroup(3).in_threads([](ControlChannel& channel) {
         call_roll(channel, {{"device", channel.rank() == 0 ? "g0" : "g1", Rule::differs_on_host}});
       })) {
    EXPECT_TRUE(contains(outcome.sentence, "have the same device, 'g1'"));
  }
}

}  // namespace
}  // namespace mulligan::dist_roll_call_test
