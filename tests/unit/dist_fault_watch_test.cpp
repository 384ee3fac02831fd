// Who is lost, stuck or slow, by made-up times.
#include "framework/ranks/fault_watch.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

namespace mulligan::dist_fault_watch_test {
namespace {

// Three ranks that tell where they are every second.
class FaultWatchTest : public testing::Test {
 protected:
  FaultWatchTest() : watch_(3, ControlOptions{}, 0) {}

  Heartbeat& rank(int i) { return beats_[i]; }
  // The same counters for all.
  void all(std::uint64_t submitted, std::uint64_t completed, std::uint64_t steps) {
    for (Heartbeat& beat : beats_) {
      beat.submitted = submitted;
      beat.completed = completed;
      beat.steps = steps;
    }
  }
  void pass(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      ++now_;
      for (int rank = 0; rank < 3; ++rank) {
        if (silent_ == rank) continue;
        watch_.heard(rank, now_);
        watch_.report(rank, beats_[rank], now_);
      }
      if (const auto finding = watch_.slow(now_))
        slow_ += fmt::format("{} {}\n", finding->rank, finding->what);
    }
  }
  void silence(int rank) { silent_ = rank; }
  void forgive() { watch_.forgive(now_); }
  int lost() const { return watch_.lost(now_) ? watch_.lost(now_)->rank : -2; }
  // -2: no rank
  int wedged() const { return watch_.wedged(now_) ? watch_.wedged(now_)->rank : -2; }
  const std::string& slow() const { return slow_; }

 private:
  FaultWatch watch_;
  Heartbeat beats_[3];
  double now_ = 0;
  int silent_ = -1;
  std::string slow_;
};

TEST_F(FaultWatchTest, ASilentRankIsLostWithinTenSeconds) {
  silence(2);
  pass(8);
  EXPECT_EQ(lost(), -2);
  pass(1);
  EXPECT_EQ(lost(), 2);
  forgive();
  EXPECT_EQ(lost(), -2) << "this process itself was stopped";
}

TEST_F(FaultWatchTest, NobodyIsStuckWhileNobodyWaits) {
  all(5, 5, 3);
  pass(5000);
  EXPECT_EQ(wedged(), -2);
  EXPECT_EQ(slow(), "");
}

TEST_F(FaultWatchTest, ARankThatOthersWaitForIsStuckWithinAMinute) {
  all(5, 5, 3);
  pass(500);
  rank(0).submitted = rank(1).submitted = 6;
  pass(58);
  EXPECT_EQ(wedged(), -2) << "58 s after the first heartbeat that said so are one more";
  pass(1);
  EXPECT_EQ(wedged(), 2);
  EXPECT_EQ(slow().substr(0, 9), "2 is slow");
  rank(2).submitted = 6;
  pass(1);
  EXPECT_EQ(wedged(), -2) << "it moves again";
}

TEST_F(FaultWatchTest, BeforeTheFirstStepThereIsMoreTime) {
  rank(0).in_call = rank(1).in_call = 1;
  pass(598);
  EXPECT_EQ(wedged(), -2);
  EXPECT_EQ(slow(), "");
  pass(1);
  EXPECT_EQ(wedged(), 2);
}

TEST_F(FaultWatchTest, LongWorkHasMoreTime) {
  all(5, 5, 3);
  rank(0).long_work = 1;
  rank(1).in_call = rank(2).in_call = 1;
  pass(590);
  EXPECT_EQ(wedged(), -2);
  EXPECT_EQ(slow(), "");
  rank(0).long_work = 0;
  pass(1);
  EXPECT_EQ(wedged(), 0);
}

TEST_F(FaultWatchTest, WhoIsDoneIsPatient) {
  all(5, 5, 3);
  rank(1).in_call = rank(2).in_call = 2;
  pass(598);
  EXPECT_EQ(wedged(), -2) << "rank 0 writes its results";
  EXPECT_EQ(slow(), "");
  pass(1);
  EXPECT_EQ(wedged(), 0);
  rank(1).in_call = 1;
  pass(58);
  EXPECT_EQ(wedged(), 0);
}

TEST_F(FaultWatchTest, TransfersThatNobodyFinishesHaveNoCulprit) {
  all(6, 5, 3);
  pass(59);
  EXPECT_EQ(wedged(), -1);
  rank(1).completed = 6;
  rank(2).completed = 6;
  rank(1).in_call = rank(2).in_call = 1;
  pass(59);
  EXPECT_EQ(wedged(), 0) << "it alone has not finished what the others have";
}

TEST_F(FaultWatchTest, WhoseHostWaitsForItsDeviceIsNotBehindForThat) {
  all(6, 5, 3);
  rank(1).calls = rank(2).calls = 8;
  rank(1).in_call = rank(2).in_call = 1;
  rank(0).calls = 7;
  pass(59);
  EXPECT_EQ(wedged(), -1);
}

TEST_F(FaultWatchTest, AmongThoseThatWaitForEachOtherTheOneWithAnEarlierCallIsNamed) {
  all(6, 6, 3);
  for (int i = 0; i < 3; ++i) {
    rank(i).in_call = 1;
    rank(i).calls = i == 1 ? 7 : 8;
  }
  pass(59);
  EXPECT_EQ(wedged(), 1);
}

TEST_F(FaultWatchTest, OfTwoThatStandStillTheOneBehindIsNamed) {
  all(5, 5, 3);
  rank(1).submitted = 7;
  rank(0).submitted = rank(0).completed = 6;
  pass(59);
  EXPECT_EQ(wedged(), 2);
}

TEST_F(FaultWatchTest, ASlowRankIsNamedOnceForEachTime) {
  all(5, 5, 3);
  rank(0).in_call = rank(2).in_call = 1;
  pass(40);
  EXPECT_EQ(slow(), "1 is slow: others have been waiting for it for 20 s\n");
  EXPECT_EQ(wedged(), -2);
}

TEST_F(FaultWatchTest, ASteadilySlowRankIsNamed) {
  for (int i = 1; i <= 61; ++i) {
    all(static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(i));
    rank(0).waited_seconds += 0.5;
    rank(1).waited_seconds += 0.4;
    pass(1);
  }
  EXPECT_EQ(slow().substr(0, 9), "2 is slow") << slow();
  EXPECT_NE(slow().find("at least 40 % of the last 60 s"), std::string::npos) << slow();
}

}  // namespace
}  // namespace mulligan::dist_fault_watch_test
