// Loss accounting: one denominator, explicit windows, and what a resume does to them.
#include <gtest/gtest.h>

#include "framework/checkpoint/loss_account.h"

namespace mulligan::checkpoint_loss_account_test {
namespace {

constexpr std::uint64_t tokens = 256;

// A loss that falls, so that a mean over the wrong window shows.
double loss_of(std::int64_t step) {
  return 2.0 + 8.0 / static_cast<double>(step + 1);
}

void count(LossAccount& account, std::int64_t first, std::int64_t last) {
  for (std::int64_t step = first; step < last; ++step) {
    account.add(step, loss_of(step) * static_cast<double>(tokens), tokens, step < 100 ? "plain" : "looped");
  }
}

double mean_of(std::int64_t first, std::int64_t last) {
  double sum = 0;
  for (std::int64_t step = first; step < last; ++step) sum += loss_of(step);
  return sum / static_cast<double>(last - first);
}

TEST(LossAccount, MeansOfRunAndPhasesHaveTheStepsCountedAsDenominator) {
  LossAccount account;
  count(account, 0, 500);
  EXPECT_EQ(account.run().steps_counted, 500u);
  EXPECT_EQ(account.run().tokens, 500 * tokens);
  EXPECT_NEAR(account.run().mean_nats(), mean_of(0, 500), 1e-12);
  ASSERT_EQ(account.phases().size(), 2u);
  EXPECT_EQ(account.phases()[0].first, "plain");
  EXPECT_NEAR(account.phases()[0].second.mean_nats(), mean_of(0, 100), 1e-12);
  EXPECT_NEAR(account.phases()[1].second.mean_nats(), mean_of(100, 500), 1e-12);
  EXPECT_FALSE(account.inconsistency());
}

TEST(LossAccount, TheMeanOverTokensWeighsStepsByTheirTokens) {
  LossAccount account;
  account.add(0, 10.0, 10, "plain");   // 1 nat per token
  account.add(1, 120.0, 30, "plain");  // 4 nats per token
  EXPECT_DOUBLE_EQ(account.run().mean_nats(), 2.5);
  EXPECT_DOUBLE_EQ(account.run().loss_sum_nats / static_cast<double>(account.run().tokens), 3.25);
}

TEST(LossAccount, AWindowIsGivenOnlyWhenAllOfItIsKept) {
  LossAccount account(100);
  count(account, 0, 250);
  ASSERT_TRUE(account.window(150, 250));
  EXPECT_NEAR(account.window(150, 250)->mean_nats, mean_of(150, 250), 1e-12);
  EXPECT_NEAR(account.window(200, 210)->mean_nats, mean_of(200, 210), 1e-12);
  EXPECT_EQ(account.last_steps()->first, 150);
  EXPECT_EQ(account.last_steps()->last, 250);
  EXPECT_FALSE(account.window(149, 250));
  EXPECT_FALSE(account.window(200, 251));
  EXPECT_FALSE(account.window(200, 200));
}

// Steps 100 to 500 after a resume: 400 losses divided by 500 steps, 0.8 of their mean.
TEST(LossAccount, IsContinuedAndTheHfFigureHasTheFactorOfItsDefect) {
  LossAccount straight, first, second;
  count(straight, 0, 500);
  EXPECT_NEAR(straight.train_loss_hf_nats(), straight.run().mean_nats(), 1e-12);
  count(first, 0, 100);
  second.restore(first.state());
  count(second, 100, 500);
  EXPECT_EQ(second.state(), straight.state()) << "a resumed account equals an uninterrupted one";
  const double mean_since_resume = second.phases()[1].second.mean_nats();
  EXPECT_NEAR(second.train_loss_hf_nats() / mean_since_resume, 0.8, 1e-12);
  EXPECT_NE(second.train_loss_hf_nats(), second.run().mean_nats());
}

// Steps 3 and 7 made no update: no mean holds them, no window is shifted by them.
TEST(LossAccount, SkippedStepsAreMadeAndNotCounted) {
  LossAccount account(6);
  for (std::int64_t step = 0; step < 10; ++step) {
    if (step == 3 || step == 7) {
      account.skip(step);
    } else {
      count(account, step, step + 1);
    }
  }
  EXPECT_EQ(account.run().steps_counted, 8u);
  EXPECT_EQ(account.state().steps_skipped, 2);
  EXPECT_EQ(account.step_last(), 10);
  EXPECT_FALSE(account.inconsistency());
  EXPECT_NEAR(account.run().mean_nats(), (10 * mean_of(0, 10) - loss_of(3) - loss_of(7)) / 8, 1e-12);
  EXPECT_FALSE(account.window(7, 8)) << "no step of it was counted";
  EXPECT_DOUBLE_EQ(account.window(8, 9)->mean_nats, loss_of(8));
  EXPECT_DOUBLE_EQ(account.window(4, 5)->mean_nats, loss_of(4)) << "the oldest of six";
  EXPECT_NEAR(account.window(6, 9)->mean_nats, (loss_of(6) + loss_of(8)) / 2, 1e-12);
  EXPECT_EQ(account.last_steps()->first, 4);
  EXPECT_NEAR(account.last_steps()->mean_nats, (6 * mean_of(4, 10) - loss_of(7)) / 5, 1e-12);

  LossAccount resumed(6);
  resumed.restore(account.state());
  for (LossAccount* one : {&account, &resumed}) count(*one, 10, 15);
  EXPECT_EQ(resumed.state(), account.state());
  EXPECT_TRUE(account.state().skipped.empty()) << "none of the last six";
  EXPECT_NEAR(account.last_steps()->mean_nats, mean_of(9, 15), 1e-12);
}

TEST(LossAccount, AccountsThatBeginWithSkippedSteps) {
  LossAccount account;
  account.skip(0);
  EXPECT_FALSE(account.last_steps());
  account.skip(1);
  count(account, 2, 4);
  EXPECT_EQ(account.state().step_first, 0);
  EXPECT_FALSE(account.inconsistency());
  EXPECT_NEAR(account.last_steps()->mean_nats, mean_of(2, 4), 1e-12);
}

TEST(LossAccount, SumsThatWereLostAreNoticed) {
  LossAccount account;
  count(account, 0, 100);
  LossAccount::State state = account.state();
  state.run = {};  // what a trainer does that forgets its sums at a resume
  account.restore(state);
  count(account, 100, 110);
  // The next step sets where counting starts: the means are of the counted steps, and record from which.
  EXPECT_EQ(account.state().step_first, 100);
  state.run.steps_counted = 3;
  account.restore(state);
  ASSERT_TRUE(account.inconsistency());
  EXPECT_NE(account.inconsistency()->find("3 steps"), std::string::npos);
}

}  // namespace
}  // namespace mulligan::checkpoint_loss_account_test
