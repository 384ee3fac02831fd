// What many ranks cost rank 0: bytes grow with their number, not with its square. The ranks are links without
// sockets that answer as ranks do.
#include <gtest/gtest.h>

#include "tests/support/simulated_ranks.h"

namespace mulligan::dist_server_size_test {
namespace {

using test_support::SimulatedRanks;

TEST(ServerSize, AConsultationIsOneSmallMessageToEachRank) {
  std::size_t before = 0;
  for (const int size : {16, 128, 512}) {
    SimulatedRanks ranks(size);
    ranks.call(CallKind::consult, std::string(16, 'x'), "answer");
    const std::size_t bytes =
        ranks.call(CallKind::consult, std::string(16, 'x'), "answer") / static_cast<std::size_t>(size - 1);
    if (before == 0) before = bytes;
    EXPECT_EQ(bytes, before) << size << " ranks: bytes to each of them";
    EXPECT_LT(bytes, 64U);
    EXPECT_EQ(ranks.buffers_of_last_call(), 1U) << "one buffer for all of them";
  }
}

TEST(ServerSize, EveryRankGetsTheAnswer) {
  SimulatedRanks ranks(512);
  ranks.call(CallKind::consult, "own", "what rank 0 says");
  EXPECT_EQ(ranks.answered_with("what rank 0 says"), 511);
}

}  // namespace
}  // namespace mulligan::dist_server_size_test
