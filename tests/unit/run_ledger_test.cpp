// Seconds booked to phases, and the training budget, under a clock that the test sets.
#include "framework/run/ledger.h"

#include <gtest/gtest.h>

namespace mulligan::run_ledger_test {
namespace {

struct FakeClock {
  double now = 100;
  SecondsClock clock() {
    return [this] { return now; };
  }
};

TEST(Ledger, APhaseThatWillBeMadeAgainIsBookedApart) {
  double now = 0;
  Ledger ledger([&] { return now; });
  ledger.enter("train");
  now = 2;
  ledger.enter("evaluate");
  now = 5;
  ledger.rename("evaluate", "evaluate_unfinished");
  now = 6;
  ledger.enter("save");
  now = 7;
  ledger.close();
  EXPECT_EQ(ledger.seconds("evaluate"), 0);
  EXPECT_EQ(ledger.seconds("evaluate_unfinished"), 4);
  EXPECT_EQ(ledger.seconds("train"), 2);
  EXPECT_EQ(ledger.seconds("save"), 1);
}

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
  EXPECT_EQ(ledger.seconds("setup"), 2);
  EXPECT_EQ(ledger.seconds("train"), 6);
  EXPECT_EQ(ledger.seconds("evaluate"), 3);
  EXPECT_EQ(ledger.seconds("quantise"), 0);
  ASSERT_EQ(ledger.phases().size(), 3u);
  EXPECT_EQ(ledger.phases()[1].first, "train");
}

TEST(Budget, FractionIsElapsedOverBudgetLessReserve) {
  FakeClock time;
  TrainConfig train;
  train.budget_seconds = 600;
  train.reserve_seconds = 100;
  Budget budget(train, time.clock());
  budget.resume();
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
  TrainConfig train;
  train.budget_seconds = 10;
  Budget budget(train, time.clock());
  budget.resume();
  for (int step = 1; step <= 3; ++step) {
    EXPECT_FALSE(budget.ended(budget.fraction(step - 1), step - 1)) << step;
    time.now += 3;
    budget.mark_steps();
  }
  // 9 s spent, the next step would end at 12 s.
  EXPECT_TRUE(budget.ended(budget.fraction(3), 3));
}

TEST(Budget, StepsBoundARunWithoutAClock) {
  FakeClock time;
  TrainConfig train;
  train.steps = 8;
  Budget budget(train, time.clock());
  budget.resume();
  EXPECT_EQ(budget.fraction(2), 0.25);
  EXPECT_FALSE(budget.ended(budget.fraction(7), 7));
  EXPECT_TRUE(budget.ended(budget.fraction(8), 8));
}

TEST(Budget, StepsAreAnUpperLimitBesidesTheClock) {
  FakeClock time;
  TrainConfig train;
  train.steps = 8;
  train.budget_seconds = 1000;
  Budget budget(train, time.clock());
  budget.resume();
  time.now += 1;
  EXPECT_DOUBLE_EQ(budget.fraction(7), 0.001);
  EXPECT_TRUE(budget.ended(budget.fraction(8), 8));
}

}  // namespace
}  // namespace mulligan::run_ledger_test
