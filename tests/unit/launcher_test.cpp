// The launcher's decisions: which cores a rank gets, which rank was the cause, what of a drawn line stays.
#include <gtest/gtest.h>

#include <csignal>

#include "framework/ranks/control_messages.h"
#include "launch/launcher/launch_plan.h"
#include "launch/launcher/outcome.h"
#include "launch/launcher/rank_output.h"

namespace mulligan::launcher_test {
namespace {

// `nodes` memory nodes of `cores` cores of two hardware threads, numbered as Linux does: first one of each core.
std::vector<PhysicalCore> machine(int nodes, int cores) {
  std::vector<PhysicalCore> all;
  for (int i = 0; i < nodes * cores; ++i) all.push_back({i / cores, {i, i + nodes * cores}});
  return all;
}

std::vector<std::string> lists(const std::vector<PhysicalCore>& cores, int ranks) {
  std::vector<std::string> texts;
  for (const std::vector<int>& share : core_shares(cores, ranks)) texts.push_back(number_list(share));
  return texts;
}

using Texts = std::vector<std::string>;

TEST(CoreShares, RanksGetWholeCoresOfOneMemoryNode) {
  EXPECT_EQ(lists(machine(2, 8), 4), (Texts{"0-3,16-19", "4-7,20-23", "8-11,24-27", "12-15,28-31"}));
  EXPECT_EQ(lists(machine(2, 8), 1), (Texts{"0-31"}));
  EXPECT_EQ(lists(machine(2, 3), 4), (Texts{"0,6", "1-2,7-8", "3,9", "4-5,10-11"}));
}

TEST(CoreShares, RanksThatDoNotDivideAmongNodesDivideAmongCores) {
  EXPECT_EQ(lists(machine(2, 3), 3), (Texts{"0-1,6-7", "2-3,8-9", "4-5,10-11"}));
}

TEST(CoreShares, MoreRanksThanCoresShareThem) {
  EXPECT_EQ(lists(machine(1, 2), 4), (Texts{"0,2", "0,2", "1,3", "1,3"}));
  EXPECT_EQ(lists({}, 2), (Texts{"", ""}));
}

TEST(CoreShares, EveryCoreIsOneRanks) {
  for (int ranks = 1; ranks <= 24; ++ranks) {
    std::vector<int> owners(48, 0);
    for (const std::vector<int>& share : core_shares(machine(2, 12), ranks)) {
      EXPECT_FALSE(share.empty());
      for (const int cpu : share) ++owners[static_cast<std::size_t>(cpu)];
    }
    EXPECT_EQ(owners, std::vector<int>(48, 1)) << ranks;
  }
}

int exited(int code) {
  return code << 8;
}

RankEnd end_of(int rank, int status, bool stopped = false) {
  return {rank, status, stopped, 0.5 * rank, "host", "log", ""};
}

TEST(LaunchOutcome, TheFirstThatFailedByItselfIsTheCause) {
  const LaunchOutcome outcome =
      judge({0, {end_of(0, exited(5)), end_of(1, exited(4)), end_of(2, exited(9)), end_of(3, exited(1))}});
  EXPECT_EQ(outcome.code, 9);
  EXPECT_TRUE(outcome.worth_restarting);
  EXPECT_EQ(outcome.sentence, "rank 2 on host failed with exit code 9; its log is log.");
}

TEST(LaunchOutcome, NoneThatWasStoppedIs) {
  EXPECT_EQ(judge({0, {end_of(0, SIGTERM, true), end_of(1, exited(5)), end_of(2, SIGKILL, true)}}).code, 5);
  EXPECT_EQ(judge({0, {end_of(0, exited(1), true), end_of(1, SIGSEGV)}}).sentence,
            "rank 1 on host was ended by SIGSEGV; its log is log.");
}

TEST(LaunchOutcome, WhatWouldFailAgainIsNotStartedAgain) {
  for (const int code : {2, 3, 4})
    EXPECT_FALSE(judge({0, {end_of(0, exited(code))}}).worth_restarting) << code;
  for (const int code : {1, 5, 139})
    EXPECT_TRUE(judge({0, {end_of(0, exited(code))}}).worth_restarting) << code;
  EXPECT_TRUE(judge({0, {end_of(0, SIGKILL)}}).worth_restarting);
  EXPECT_EQ(judge({0, {end_of(0, 0), end_of(1, 0)}}).code, 0);
}

TEST(LaunchOutcome, AskedToEndItIsAnInterruptionUnlessARankFailedAtThat) {
  EXPECT_EQ(judge({SIGTERM, {end_of(0, exited(4), true), end_of(1, SIGTERM, true)}}).code, 4);
  EXPECT_EQ(judge({SIGTERM, {end_of(0, 0, true), end_of(1, 0, true)}}).code, 0);
  EXPECT_EQ(judge({SIGTERM, {end_of(0, exited(4), true), end_of(1, exited(1), true)}}).code, 1);
  EXPECT_NE(judge({SIGINT, {end_of(0, exited(4), true), end_of(1, SIGKILL, true)}}).sentence.find("1 of 2"),
            std::string::npos);
}

TEST(LaunchOutcome, TravelsBetweenLaunchers) {
  AttemptEnd end{SIGINT, {end_of(3, SIGKILL, true), end_of(1, exited(5))}};
  end.ranks[0].words = "not UTF-8: \xff";
  const auto read = from_wire<AttemptEnd>(to_wire(end));
  EXPECT_EQ(read.signal, SIGINT);
  ASSERT_EQ(read.ranks.size(), 2U);
  EXPECT_EQ(read.ranks[0].status, SIGKILL);
  EXPECT_TRUE(read.ranks[0].stopped);
  EXPECT_EQ(read.ranks[1].code(), 5);
  EXPECT_EQ(read.ranks[1].seconds, 0.5);
  EXPECT_EQ(read.ranks[0].words, end.ranks[0].words);
  EXPECT_THROW(from_wire<AttemptEnd>(to_wire(end).substr(1)), Error);
}

TEST(RankOutput, OfADrawnLineWhatWasSeenAtLastStays) {
  EXPECT_EQ(line_at_last("\r\x1b[2Khalf\r\x1b[2K\x1b[1;31mmulligan:\x1b[0m no"), "mulligan: no");
  EXPECT_EQ(line_at_last("plain\r"), "plain");
  EXPECT_EQ(line_at_last("\r\x1b[2K"), "");
  EXPECT_EQ(line_at_last("cut \x1b["), "cut ");
}

TEST(LaunchPlan, RanksOfALaterNodeFollowThoseOfTheEarlier) {
  setenv("MULLIGAN_SECRET", "secret", 1);
  LaunchOptions options;
  options.nodes = 3;
  options.node = 2;
  options.ranks_per_node = "4";
  options.endpoint = "first.example:1234";
  options.command = {"train", "run.toml"};
  const LaunchPlan plan = plan_launch(options);
  unsetenv("MULLIGAN_SECRET");
  EXPECT_EQ(plan.ranks.front().rank, 8);
  EXPECT_EQ(plan.ranks.back().rank, 11);
  EXPECT_EQ(plan.world_size, 12);
  EXPECT_EQ(plan.address, "first.example");
  EXPECT_EQ(plan.port, 1234);
  EXPECT_EQ(plan.secret, "");
}

}  // namespace
}  // namespace mulligan::launcher_test
