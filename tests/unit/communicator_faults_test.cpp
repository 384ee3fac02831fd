// What gloo's ranks say when a rank does not come, stays silent, goes away or is told to stop.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/support/sentence.h"
#include "tests/unit/communicator_worlds.h"

namespace mulligan::communicator_faults_test {
namespace {

std::vector<CommunicatorWorld> gloo_worlds() {
  std::vector<CommunicatorWorld> several;
  for (const CommunicatorWorld& world : communicator_worlds()) {
    if (world.plugin == "gloo") several.push_back(world);
  }
  return several;
}

class CommunicatorFaults : public testing::TestWithParam<CommunicatorWorld> {
 protected:
  struct Rank : WorldRank {
    using WorldRank::WorldRank;
    // Empty, or why it failed.
    std::string sum() {
      return refusal_of([this] { batch->run(); });
    }
  };
};

TEST_P(CommunicatorFaults, ARankThatNeverComesIsMissedInTime) {
  ThreadGroups world(2);
  const std::unique_ptr<Backend> backend = make_backend(GetParam());
  CommunicatorOptions options;
  options.open_seconds = 0.2;
  EXPECT_TRUE(refuses([&] { make_communicator(GetParam(), world.group(0), *backend, "", options); },
                      "rank 1 did not come"));
}

TEST_P(CommunicatorFaults, ARankThatFailsElsewhereEndsTheMeeting) {
  ThreadGroups world(2);
  std::thread other([&] { world.fail("rank 1 failed: no such shard."); });
  const std::unique_ptr<Backend> backend = make_backend(GetParam());
  const std::string text = sentence_of([&] { make_communicator(GetParam(), world.group(0), *backend); });
  other.join();
  EXPECT_TRUE(contains(text, "no such shard"));
}

TEST_P(CommunicatorFaults, ASilentRankIsNamedAtTheTimeout) {
  expect_ranks(2, [&](HostGroup& group) {
    Rank rank(GetParam(), group, "timeout = 0.3");
    if (group.rank() == 0) {
      EXPECT_TRUE(contains(rank.sum(), "rank 1 did not answer for 0.3"));
      EXPECT_NE(rank.sum(), "") << "what failed once goes on failing";
      EXPECT_NE(sentence_of([&] { rank.communicator->transfers(); }), "");
    }
    group.barrier();
  });
}

TEST_P(CommunicatorFaults, ARankThatGoesAwayIsNamed) {
  expect_ranks(2, [&](HostGroup& group) {
    auto rank = std::make_unique<Rank>(GetParam(), group);
    group.barrier();  // both have met: one that leaves while the other still connects is another case
    if (group.rank() == 0) {
      EXPECT_TRUE(contains(rank->sum(), "rank 1"));
    } else {
      rank.reset();
    }
    group.barrier();
  });
}

TEST_P(CommunicatorFaults, AbortEndsATransferThatWaits) {
  expect_ranks(2, [&](HostGroup& group) {
    Rank rank(GetParam(), group);
    if (group.rank() == 0) {
      rank.batch->submit();
      std::thread other([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        rank.communicator->abort();
      });
      const std::string text = sentence_of([&] { rank.batch->join(); });
      other.join();
      EXPECT_TRUE(contains(text, "aborted"));
      EXPECT_TRUE(refuses([&] { rank.batch->submit(); }, "aborted"));
    }
    group.barrier();
  });
}

TEST_P(CommunicatorFaults, AbortWithNothingUnderWayEndsWhatComesLater) {
  expect_ranks(2, [&](HostGroup& group) {
    Rank rank(GetParam(), group);
    group.barrier();  // both have met: an abort while the other one still connects is another case
    rank.communicator->abort();
    EXPECT_TRUE(contains(rank.sum(), "aborted"));
    group.barrier();
  });
}

// The other rank reports the lost rank, or a sum that was complete.
TEST_P(CommunicatorFaults, ARankThatGoesInTheMiddleLeavesNobodyWaiting) {
  constexpr int kTurns = 16;
  for (int turn = 0; turn < kTurns; ++turn) {
    // Rank 0 of a broadcast only sends.
    const Collective kind = turn % 2 ? Collective::broadcast : Collective::all_reduce;
    expect_ranks(2, [&](HostGroup& group) {
      auto rank = std::make_unique<Rank>(GetParam(), group, "timeout = 30", 4'000'003, kind);
      group.barrier();
      if (group.rank() == 0) {
        const std::string text = rank->sum();
        EXPECT_FALSE(contains(text, "did not answer")) << "turn " << turn << ": " << text;
        if (!text.empty()) {
          EXPECT_TRUE(contains(text, "rank 1"));
        }
      } else {
        rank->batch->submit();
        std::this_thread::sleep_for(std::chrono::microseconds(700 * turn));
        rank->communicator->abort();
        rank.reset();
      }
      group.barrier();
    });
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CommunicatorFaults);
INSTANTIATE_TEST_SUITE_P(Plugins, CommunicatorFaults, testing::ValuesIn(gloo_worlds()),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace mulligan::communicator_faults_test
