// Faults of a run of several ranks, injected: each ends in one verdict that names the culprit, on every rank.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <thread>

#include "framework/core/file.h"
#include "framework/ranks/handshake.h"
#include "tests/support/rank_group.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/sentence.h"

namespace mulligan::dist_faults_test {
namespace {

using test_support::expect_all;
using test_support::Outcome;
using test_support::RankGroup;
using test_support::RawConnection;
using test_support::ScratchFolder;

constexpr int failed = static_cast<int>(ExitCode::run_failed);
constexpr int data = static_cast<int>(ExitCode::bad_data);
constexpr int stopped = static_cast<int>(ExitCode::interrupted);
constexpr int peer = static_cast<int>(ExitCode::peer_failed);

// Every rank but `culprit` ended with the sentence that names it.
void expect_verdict(const std::vector<Outcome>& outcomes, int culprit, const std::string& part) {
  const Outcome& first = outcomes[culprit == 0 ? 1 : 0];
  EXPECT_TRUE(contains(first.sentence, fmt::format("rank {} (", culprit), part));
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (static_cast<int>(i) == culprit) continue;
    EXPECT_EQ(outcomes[i].code, peer) << i;
    EXPECT_EQ(outcomes[i].sentence, first.sentence) << i;
  }
}

void wait_for_ever(ControlChannel& channel) {
  while (true) channel.barrier();
}

void sleep_milliseconds(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

// All ranks meet; then one does this, and the others wait.
RankGroup::Body only(int rank, const RankGroup::Body& fault) {
  return [=](ControlChannel& channel) {
    channel.barrier();
    if (channel.rank() == rank) fault(channel);
    wait_for_ever(channel);
  };
}

// Leaves the process to be waited for.
void wait_until_ended(int process) {
  siginfo_t info{};
  EXPECT_EQ(waitid(P_PID, static_cast<id_t>(process), &info, WEXITED | WNOWAIT), 0);
}

// Two groups that wait at the same time, each for its own deadline.
template <typename Case>
void both_at_once(int ranks, Case&& one) {
  RankGroup first(ranks), second(ranks);
  while (std::abs(first.ports[0] - second.ports[0]) < 10) second.ports = test_support::free_ports();
  const std::jthread other([&] { one(first, 0); });
  one(second, 1);
}

TEST(Faults, AnExceptionOfOneRankIsKnownToAll) {
  for (const int culprit : {0, 2}) {
    std::atomic<int> told = 0;
    const auto outcomes = RankGroup(3).in_threads([&](ControlChannel& channel) {
      channel.watch(&channel, {},
                    [&](const Verdict& verdict) { told += verdict.culprit == culprit ? 1 : 100; });
      channel.barrier();
      if (channel.rank() == culprit) throw data_error("shard x is damaged.");
      wait_for_ever(channel);
    });
    expect_verdict(outcomes, culprit, "failed: shard x is damaged.");
    EXPECT_EQ(outcomes[static_cast<std::size_t>(culprit)].code, data);
    EXPECT_EQ(outcomes[static_cast<std::size_t>(culprit)].sentence, "shard x is damaged.") << "its own";
    EXPECT_EQ(told, 3);
  }
}

TEST(Faults, LaterCallsFailAtOnce) {
  const auto outcomes = RankGroup(2).in_threads([&](ControlChannel& channel) {
    if (channel.rank() == 1) throw run_error("the disk is full.");
    try {
      channel.barrier();
    } catch (const Error&) {
      EXPECT_TRUE(channel.verdict().has_value());
      for (const auto& call : std::vector<std::function<void()>>{
               [&] { channel.barrier(); }, [&] { channel.get("key", 60); }, [&] { channel.put("a", "b"); },
               [&] { channel.agree(1); }, [&] { channel.finish(); }}) {
        sentence_of(ExitCode::peer_failed, [&] { call(); });
      }
      int told = 0;
      channel.watch(&channel, {}, [&](const Verdict&) { ++told; });
      EXPECT_EQ(told, 1) << "also who asks later is told";
      throw;
    }
  });
  expect_verdict(outcomes, 1, "the disk is full.");
}

TEST(Faults, AKilledRank) {
  for (const int culprit : {0, 2}) {
    const auto outcomes =
        RankGroup(3).in_processes(only(culprit, [](ControlChannel&) { kill(getpid(), SIGKILL); }));
    expect_verdict(outcomes, culprit, "was lost: its connection was closed");
    EXPECT_EQ(outcomes[static_cast<std::size_t>(culprit)].code, 128 + SIGKILL);
  }
}

TEST(Faults, AStoppedRankIsLostAndLearnsItWhenItGoesOn) {
  both_at_once(3, [](RankGroup& group, int culprit) {
    group.options.silent = 2;
    const auto outcomes = group.in_processes(wait_for_ever, [&](const std::vector<int>& processes) {
      kill(processes[static_cast<std::size_t>(culprit)], SIGSTOP);
      wait_until_ended(processes[2]);
      wait_until_ended(processes[static_cast<std::size_t>(1 - culprit)]);
      kill(processes[static_cast<std::size_t>(culprit)], SIGCONT);
    });
    // Without rank 0 each rank decides for itself, and rank 0 hears what they decided.
    expect_verdict(outcomes, culprit, "was lost: it said nothing for ");
    EXPECT_EQ(outcomes[static_cast<std::size_t>(culprit)].code, failed);
    EXPECT_TRUE(
        contains(outcomes[static_cast<std::size_t>(culprit)].sentence, "was lost: it said nothing for "))
        << outcomes[static_cast<std::size_t>(culprit)].sentence;
  });
}

// One of the others was killed meanwhile: that its connection is closed says less than that of the rest.
TEST(Faults, AStoppedRankZeroDoesNotBlameWhoWasKilledMeanwhile) {
  RankGroup group(4);
  group.options.silent = 2;
  const auto outcomes = group.in_processes(wait_for_ever, [&](const std::vector<int>& processes) {
    kill(processes[0], SIGSTOP);
    kill(processes[1], SIGKILL);
    wait_until_ended(processes[2]);
    wait_until_ended(processes[3]);
    kill(processes[0], SIGCONT);
  });
  for (const std::size_t rank : {0U, 2U, 3U}) {
    EXPECT_TRUE(contains(outcomes[rank].sentence, "rank 0 (", "was lost: it said nothing"));
  }
  EXPECT_EQ(outcomes[0].code, failed);
}

TEST(Faults, CountingAndAbortingThatNeverReturnEndTheRun) {
  RankGroup group(2);
  group.options.wedged = 0.5;
  group.options.watchdog = 1;
  const auto outcomes = group.in_processes([&](ControlChannel& channel) {
    ++channel.progress().steps;
    if (channel.rank() == 1) {
      const auto count = []() -> TransferCount {
        for (;;) pause();
      };
      channel.watch(&channel, count, [](const Verdict&) {
        for (;;) pause();
      });
    }
    for (int i = 0; i < 20; ++i) {  // counting delays no rank
      channel.barrier();
      sleep_milliseconds(20);
    }
    if (channel.rank() == 1) channel.forget(&channel);
    wait_for_ever(channel);
  });
  EXPECT_EQ(outcomes[0].code, peer) << outcomes[0].sentence;
  EXPECT_TRUE(contains(outcomes[0].sentence, "rank 1 ("));
  EXPECT_EQ(outcomes[1].code, failed);
}

// The transfer fails before the rank's own thread could see the verdict, were they two things.
TEST(Faults, AnAbortedTransferNeverFailsBeforeItsVerdict) {
  for (int round = 0; round < 5; ++round) {
    RankGroup group(2);
    group.options.wedged = 0.3;
    const auto outcomes = group.in_threads([&](ControlChannel& channel) {
      channel.progress().steps = 1;
      channel.barrier();
      if (channel.rank() == 0) wait_for_ever(channel);
      std::atomic<bool> over = false;
      channel.watch(&channel, {}, [&](const Verdict&) { over = true; });
      std::vector<std::jthread> crowd;  // in front of the lock that the verdict waits for
      for (int i = 0; i < 8; ++i)
        crowd.emplace_back([&] {
          while (!over) static_cast<void>(channel.verdict());
        });
      while (!over) std::this_thread::yield();
      throw channel.report_failure(run_error("the communicator was aborted"), FailureCause::communication);
    });
    expect_verdict(outcomes, 1, "is stuck: it has not moved for ");
    EXPECT_EQ(outcomes[1].code, failed);
    EXPECT_TRUE(contains(outcomes[1].sentence, "rank 1 ("));
  }
}

TEST(Faults, AFailedTransferIsMostlyAnothersFault) {
  // Rank 2 is stopped; rank 1's transfer fails long before rank 2's silence is noticed.
  RankGroup group(3);
  group.options.silent = 2;
  const auto outcomes = group.in_processes(
      [&](ControlChannel& channel) {
        channel.barrier();
        if (channel.rank() == 2) kill(getpid(), SIGSTOP);
        sleep_milliseconds(300);
        if (channel.rank() == 1)
          throw channel.report_failure(run_error("all_reduce timed out."), FailureCause::communication);
        wait_for_ever(channel);
      },
      [&](const std::vector<int>& processes) {
        wait_until_ended(processes[0]);
        wait_until_ended(processes[1]);
        kill(processes[2], SIGKILL);
      });
  expect_verdict(outcomes, 2, "was lost: it said nothing for ");
}

TEST(Faults, AFailedTransferOfAHealthyRunNamesItsRank) {
  const auto outcomes = RankGroup(3).in_threads(only(1, [](ControlChannel& channel) {
    throw channel.report_failure(run_error("the library failed."), FailureCause::communication);
  }));
  expect_verdict(outcomes, 1, "failed, and every rank is still there: the library failed.");
  EXPECT_EQ(outcomes[1].sentence, "the library failed.");
}

TEST(Faults, AStopIsNoFault) {
  const ScratchFolder scratch;
  RankGroup group(3);
  group.options.error_file = scratch / "error.json";
  const auto outcomes = group.in_threads(
      only(1, [](ControlChannel&) { throw Error(ExitCode::interrupted, "stopped by SIGTERM."); }));
  expect_all({outcomes[0], outcomes[2]}, stopped, {"rank 1 (", "stopped: stopped by SIGTERM."});
  EXPECT_EQ(outcomes[1].sentence, "stopped by SIGTERM.");
  EXPECT_FALSE(std::filesystem::exists(scratch / "error.json"));
}

TEST(Faults, TorchrunFindsTheReasonOnEveryRank) {
  const ScratchFolder scratch;
  RankGroup group(3);
  group.change = [&](const LaunchEnvironment& environment, ControlOptions& options) {
    options.error_file = scratch.path() / fmt::format("error{}.json", environment.rank);
  };
  const auto outcomes =
      group.in_threads(only(1, [](ControlChannel&) { throw run_error("bad \"bytes\"\n\x01"); }));
  for (int rank = 0; rank < 3; ++rank) {
    const auto json = nlohmann::json::parse(read_file(scratch.path() / fmt::format("error{}.json", rank)));
    const std::string sentence = json["message"]["message"];
    EXPECT_EQ(sentence, outcomes[0].sentence);
    EXPECT_EQ(json["message"]["extraInfo"]["py_callstack"], sentence);
    EXPECT_GT(std::stoll(json["message"]["extraInfo"]["timestamp"].get<std::string>()), 1700000000);
  }
}

TEST(Faults, AProcessThatHangsAfterAVerdictIsEnded) {
  RankGroup group(3);
  group.options.watchdog = 0.3;
  const auto outcomes = group.in_processes([&](ControlChannel& channel) {
    channel.barrier();
    if (channel.rank() == 1) throw data_error("no data.");
    if (channel.rank() == 2) {
      while (true) pause();
    }
    wait_for_ever(channel);
  });
  EXPECT_EQ(outcomes[0].code, peer);
  EXPECT_EQ(outcomes[1].code, data);
  EXPECT_EQ(outcomes[2].code, peer);
  EXPECT_EQ(outcomes[2].sentence, "") << "it never came to its end by itself";
}

TEST(Faults, RanksThatDoNotDoTheSame) {
  const auto outcomes =
      RankGroup(2).in_threads(only(1, [](ControlChannel& channel) { channel.broadcast(""); }));
  bool named = false;
  for (const Outcome& outcome : outcomes) {
    EXPECT_NE(outcome.code, 0);
    named = named || contains(outcome.sentence, "came to a broadcast") ||
            contains(outcome.sentence, "came to a barrier");
  }
  EXPECT_TRUE(named) << outcomes[0].sentence;
}

// A rank that has the secret and meets the others, but speaks nonsense afterwards.
void join_and_send(const RankGroup& group, int rank, const std::string& bytes) {
  RawConnection connection(group.ports[0]);
  const ControlMessage greeting = connection.receive();
  const RunIdentity run = identity_of(group.environment(rank), "");
  const auto hello = answer_greeting(greeting, run, own_name(rank), random_nonce());
  ASSERT_TRUE(hello);
  connection.send(write_message(*hello));
  read_message<Welcome>(connection.receive());
  connection.send(write_message(Arrival{1, "barrier", ""}));
  while (connection.receive().kind != CallResult::kind) {
  }
  connection.send(bytes);
  connection.wait_for_end();
}

TEST(Faults, NonsenseFromARankEndsTheRun) {
  const std::vector<std::string> nonsense{
      std::string("\xff\xff\xff\x7f\x05", 5),                 // a frame of 2 GB
      std::string("\x01\x00\x00\x10\x05", 5),                 // one byte more than 256 MiB
      std::string("\x00\x00\x00\x00\x63", 5),                 // a kind that there is not
      std::string("\x02\x00\x00\x00\x05xx", 7),               // a heartbeat of two bytes
      to_frame(Heartbeat::kind, to_wire(Heartbeat{}) + "x"),  // of one byte too many
      write_message(Greeting{}),                              // not now
      write_message(Arrival{9, "all_gather", ""}),            // a call too early
  };
  for (const std::string& bytes : nonsense) {
    RankGroup group(3);
    group.absent = {2};
    std::vector<Outcome> outcomes;
    std::thread ranks([&] { outcomes = group.in_threads(wait_for_ever); });
    join_and_send(group, 2, bytes);
    ranks.join();
    expect_all({outcomes[0], outcomes[1]}, peer, {"rank 2 ("});
  }
}

TEST(Faults, StrangersOnThePortDisturbNobody) {
  const std::vector<std::string> garbage{
      "GET / HTTP/1.1\r\n\r\n",
      std::string(100000, 'x'),
      std::string("\xff\xff\xff\x7f\x02", 5),
      std::string("\x04\x00\x00\x00\x02mull", 9),
      std::string("\x00\x00\x00\x00\x02", 5),
      write_message(Farewell{}),
      write_message(FailureReport{FailureCause::own, "no rank says so"}),
      write_message(Hello{}).substr(0, 100),
      "",
  };
  RankGroup group(3);
  group.options.handshake = 1;
  const auto disturb = [&] {
    for (int round = 0; round < 5; ++round) {
      for (const std::string& bytes : garbage) {
        RawConnection connection(group.ports[0]);
        connection.send(bytes);
      }
    }
    // Those that stay and say nothing are let go of.
    RawConnection first(group.ports[0]), second(group.ports[0]);
    first.send("\x04");
    first.wait_for_end();
    second.wait_for_end();
  };
  const auto outcomes = group.in_threads([&](ControlChannel& channel) {
    channel.barrier();
    if (channel.rank() == 1) disturb();
    channel.barrier();
  });
  expect_all(outcomes, 0);

  group.ports = test_support::free_ports();
  group.change = [&](const LaunchEnvironment& environment, ControlOptions&) {
    // Before the last rank is there.
    if (environment.rank == 2) disturb();
  };
  expect_all(group.in_threads([](ControlChannel&) {}), 0);
}

}  // namespace
}  // namespace mulligan::dist_faults_test
