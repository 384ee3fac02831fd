// Messages between ranks.
#include "framework/ranks/control_channel.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>

#include "tests/support/rank_group.h"
#include "tests/support/sentence.h"

namespace mulligan::dist_control_channel_test {
namespace {

using test_support::Outcome;
using test_support::RankGroup;

void expect_all_fine(const std::vector<Outcome>& outcomes) {
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.code, 0) << outcome.sentence;
}

// What every rank does and checks; throws what does not hold.
void exchange(ControlChannel& channel) {
  const auto require = [](bool holds, const char* what) {
    if (!holds) throw run_error("{}", what);
  };
  const int rank = channel.rank();
  const auto gathered = channel.all_gather(std::string(static_cast<std::size_t>(rank), 'x'));
  require(gathered.size() == static_cast<std::size_t>(channel.world_size()), "not all were gathered");
  for (std::size_t i = 0; i < gathered.size(); ++i)
    require(gathered[i] == std::string(i, 'x'), "gathered wrong");
  require(channel.broadcast(fmt::format("from {}", rank)) == "from 0", "broadcast wrong");
  require(channel.agree(rank + 0.5) == 0.5, "agreed wrong");
  channel.barrier();
  std::array<double, 2> values{1.0 + rank, 1e17};
  channel.sum(values);
  const int n = channel.world_size();
  require(values[0] == n * (n + 1) / 2.0, "the sum is wrong");
  const auto joined = [](const std::vector<std::string>& all) {
    std::string text;
    for (const std::string& one : all) text += one;
    return text;
  };
  std::string expected, own = std::string(700'000, static_cast<char>('a' + rank));  // in several messages
  for (int i = 0; i < n; ++i) expected += static_cast<char>('a' + i);
  require(channel.consult(own.substr(0, 1), joined) == expected, "consulted wrong");
  require(channel.consult_texts(own, joined).size() == own.size() * static_cast<std::size_t>(n),
          "consulted wrong with texts");
  const std::array<double, 2> parts{1e17, 1.0 + rank};
  double in_order = 0;
  for (int i = 0; i < n; ++i) in_order = in_order + 1e17 + (1.0 + i);
  require(channel.sum_in_order(parts) == in_order, "the sum in order is wrong");
  if (rank == n - 1) channel.put("key", "value");
  require(channel.get("key", 60) == "value", "a value did not come");
  require(channel.get("key", 60) == "value", "a value came once only");
}

TEST(ControlChannel, MessagesPassBetweenThreads) {
  for (const int size : {1, 2, 5}) expect_all_fine(RankGroup(size).in_threads(exchange));
}

TEST(ControlChannel, MessagesPassBetweenProcesses) {
  expect_all_fine(RankGroup(3).in_processes(exchange));
}

TEST(ControlChannel, MessagesMayBeLargerThanAFrame) {
  expect_all_fine(RankGroup(3).in_threads([](ControlChannel& channel) {
    std::string large(largest_frame + 5, '\0');
    for (std::size_t i = 0; i < large.size(); ++i)
      large[i] = static_cast<char>(i * 31 + static_cast<std::size_t>(channel.rank()));
    const auto all = channel.all_gather(large);
    const std::string first = channel.broadcast(large);
    if (all[static_cast<std::size_t>(channel.rank())] != large || first != all[0]) throw run_error("damaged");
  }));
  const std::string sentence = sentence_of([] {
    RankGroup group(1);
    const auto channel = meet(group.environment(0), group.options);
    channel->all_gather(std::string(largest_message, 'x'));
  });
  EXPECT_TRUE(contains(sentence, "send it in parts"));
}

TEST(ControlChannel, AValueThatNobodyPutsIsASentence) {
  const auto outcomes = RankGroup(2).in_threads([](ControlChannel& channel) {
    const std::string sentence = sentence_of([&] { channel.get("absent", 0.05); });
    EXPECT_EQ(sentence, "no rank has put 'absent' within 0.05 s.");
    channel.barrier();
  });
  expect_all_fine(outcomes);
}

TEST(ControlChannel, AnEndThatOneRankComesToLateIsNoFault) {
  RankGroup group(3);
  expect_all_fine(group.in_threads([](ControlChannel& channel) {
    if (channel.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    if (channel.rank() == 2) channel.put("left", "behind");
  }));
}

TEST(ControlChannel, ManyCallsOneAfterAnother) {
  expect_all_fine(RankGroup(2).in_threads([](ControlChannel& channel) {
    for (int i = 0; i < 2000; ++i) {
      const auto all = channel.all_gather(std::to_string(i));
      if (all != std::vector<std::string>(2, std::to_string(i))) throw run_error("call {} is wrong", i);
    }
  }));
}

}  // namespace
}  // namespace mulligan::dist_control_channel_test
