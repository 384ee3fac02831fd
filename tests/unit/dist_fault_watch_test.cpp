// Who is lost, stuck or slow, by made-up times.
#include "framework/ranks/fault_watch.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

namespace mulligan::dist_fault_watch_test {
namespace {

// Three ranks that tell where they are every second.
class Watch {
 public:
  Watch() : watch_(3, ControlOptions{}, 0) {}

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

TEST(FaultWatch, ASilentRankIsLostWithinTenSeconds) {
  Watch watch;
  watch.silence(2);
  watch.pass(8);
  EXPECT_EQ(watch.lost(), -2);
  watch.pass(1);
  EXPECT_EQ(watch.lost(), 2);
  watch.forgive();
  EXPECT_EQ(watch.lost(), -2) << "this process itself was stopped";
}

TEST(FaultWatch, NobodyIsStuckWhileNobodyWaits) {
  Watch watch;
  watch.all(5, 5, 3);
  watch.pass(5000);
  EXPECT_EQ(watch.wedged(), -2);
  EXPECT_EQ(watch.slow(), "");
}

TEST(FaultWatch, ARankThatOthersWaitForIsStuckWithinAMinute) {
  Watch watch;
  watch.all(5, 5, 3);
  watch.pass(500);
  watch.rank(0).submitted = watch.rank(1).submitted = 6;
  watch.pass(58);
  EXPECT_EQ(watch.wedged(), -2) << "58 s after the first heartbeat that said so are one more";
  watch.pass(1);
  EXPECT_EQ(watch.wedged(), 2);
  EXPECT_EQ(watch.slow().substr(0, 9), "2 is slow");
  watch.rank(2).submitted = 6;
  watch.pass(1);
  EXPECT_EQ(watch.wedged(), -2) << "it moves again";
}

TEST(FaultWatch, BeforeTheFirstStepThereIsMoreTime) {
  Watch watch;
  watch.rank(0).in_call = watch.rank(1).in_call = 1;
  watch.pass(598);
  EXPECT_EQ(watch.wedged(), -2);
  EXPECT_EQ(watch.slow(), "");
  watch.pass(1);
  EXPECT_EQ(watch.wedged(), 2);
}

TEST(FaultWatch, LongWorkHasMoreTime) {
  Watch watch;
  watch.all(5, 5, 3);
  watch.rank(0).long_work = 1;
  watch.rank(1).in_call = watch.rank(2).in_call = 1;
  watch.pass(590);
  EXPECT_EQ(watch.wedged(), -2);
  EXPECT_EQ(watch.slow(), "");
  watch.rank(0).long_work = 0;
  watch.pass(1);
  EXPECT_EQ(watch.wedged(), 0);
}

TEST(FaultWatch, WhoIsDoneIsPatient) {
  Watch watch;
  watch.all(5, 5, 3);
  watch.rank(1).in_call = watch.rank(2).in_call = 2;
  watch.pass(598);
  EXPECT_EQ(watch.wedged(), -2) << "rank 0 writes its results";
  EXPECT_EQ(watch.slow(), "");
  watch.pass(1);
  EXPECT_EQ(watch.wedged(), 0);
  watch.rank(1).in_call = 1;
  watch.pass(58);
  EXPECT_EQ(watch.wedged(), 0);
}

TEST(FaultWatch, TransfersThatNobodyFinishesHaveNoCulprit) {
  Watch watch;
  watch.all(6, 5, 3);
  watch.pass(59);
  EXPECT_EQ(watch.wedged(), -1);
  watch.rank(1).completed = 6;
  watch.rank(2).completed = 6;
  watch.rank(1).in_call = watch.rank(2).in_call = 1;
  watch.pass(59);
  EXPECT_EQ(watch.wedged(), 0) << "it alone has not finished what the others have";
}

TEST(FaultWatch, WhoseHostWaitsForItsDeviceIsNotBehindForThat) {
  Watch watch;
  watch.all(6, 5, 3);
  watch.rank(1).calls = watch.rank(2).calls = 8;
  watch.rank(1).in_call = watch.rank(2).in_call = 1;
  watch.rank(0).calls = 7;
  watch.pass(59);
  EXPECT_EQ(watch.wedged(), -1);
}

TEST(FaultWatch, AmongThoseThatWaitForEachOtherTheOneWithAnEarlierCallIsNamed) {
  Watch watch;
  watch.all(6, 6, 3);
  for (int rank = 0; rank < 3; ++rank) {
    watch.rank(rank).in_call = 1;
    watch.rank(rank).calls = rank == 1 ? 7 : 8;
  }
  watch.pass(59);
  EXPECT_EQ(watch.wedged(), 1);
}

TEST(FaultWatch, OfTwoThatStandStillTheOneBehindIsNamed) {
  Watch watch;
  watch.all(5, 5, 3);
  watch.rank(1).submitted = 7;
  watch.rank(0).submitted = watch.rank(0).completed = 6;
  watch.pass(59);
  EXPECT_EQ(watch.wedged(), 2);
}

TEST(FaultWatch, ASlowRankIsNamedOnceForEachTime) {
  Watch watch;
  watch.all(5, 5, 3);
  watch.rank(0).in_call = watch.rank(2).in_call = 1;
  watch.pass(40);
  EXPECT_EQ(watch.slow(), "1 is slow: others have been waiting for it for 20 s\n");
  EXPECT_EQ(watch.wedged(), -2);
}

TEST(FaultWatch, ASteadilySlowRankIsNamed) {
  Watch watch;
  for (int i = 1; i <= 61; ++i) {
    watch.all(static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(i));
    watch.rank(0).waited_seconds += 0.5;
    watch.rank(1).waited_seconds += 0.4;
    watch.pass(1);
  }
  EXPECT_EQ(watch.slow().substr(0, 9), "2 is slow") << watch.slow();
  EXPECT_NE(watch.slow().find("at least 40 % of the last 60 s"), std::string::npos) << watch.slow();
}

}  // namespace
}  // namespace mulligan::dist_fault_watch_test
