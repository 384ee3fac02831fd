// Ranks that differ do not go on together.
#include "framework/ranks/roll_call.h"

#include <gtest/gtest.h>

#include "framework/ranks/wire.h"
#include "tests/support/rank_group.h"
#include "tests/support/sentence.h"

namespace mulligan::dist_roll_call_test {
namespace {

using test_support::Outcome;
using test_support::RankGroup;

RollCallEntry entry(const std::string& host, const std::string& digest) {
  return {host, 7, {{"build", "b"}, {"configuration", digest}}};
}

TEST(RollCall, RanksThatAgree) {
  EXPECT_EQ(first_difference({entry("a", "x"), entry("a", "x"), entry("b", "x")}), std::nullopt);
  EXPECT_EQ(first_difference({}), std::nullopt);
}

TEST(RollCall, TheFirstDifferenceIsNamed) {
  EXPECT_EQ(first_difference({entry("a", "x"), entry("a", "x"), entry("b", "y\n")}),
            "rank 0 (a, process 7) and rank 2 (b, process 7) differ in configuration: 'x' and 'y\\n'; start "
            "all ranks with the same.");
  RollCallEntry shorter = entry("b", "x");
  shorter.facts.pop_back();
  EXPECT_NE(first_difference({entry("a", "x"), shorter})->find("configuration: 'x' and '(not set)'"),
            std::string::npos);
  EXPECT_NE(first_difference({shorter, entry("a", "x")})->find("configuration: '(not set)' and 'x'"),
            std::string::npos);
}

TEST(RollCall, EntriesReadBack) {
  const RollCallEntry one = entry("host", std::string(5000, '\0'));
  EXPECT_EQ(from_wire<RollCallEntry>(to_wire(one)), one);
  EXPECT_NE(sentence_of([&] { from_wire<RollCallEntry>(to_wire(one).substr(1)); }), "");
  EXPECT_NE(sentence_of([&] { from_wire<RollCallEntry>(to_wire(one) + "x"); }), "");
}

TEST(RollCall, EveryRankThrowsTheSame) {
  const auto body = [](ControlChannel& channel) {
    call_roll(channel, {{"build", "b"}});
    call_roll(channel, {{"configuration", channel.rank() == 1 ? "b" : "a"}});
  };
  for (const Outcome& outcome : RankGroup(3).in_threads(body)) {
    EXPECT_EQ(outcome.code, static_cast<int>(ExitCode::bad_configuration));
    EXPECT_TRUE(contains(outcome.sentence, "differ in configuration: 'a' and 'b'"));
  }
}

}  // namespace
}  // namespace mulligan::dist_roll_call_test
