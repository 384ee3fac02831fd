// The nccl communicator on a library that is slow, fails and hangs.
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <thread>

#include "tests/support/sentence.h"
#include "tests/unit/communicator_worlds.h"

namespace mulligan::communicator_nccl_test {
namespace {

const CommunicatorWorld kWorld{"nccl", "stub", 2};

struct Rank {
  explicit Rank(HostGroup& group, const std::string& keys = "")
      : backend(make_backend(kWorld)),
        store(*backend),
        communicator(make_communicator(kWorld, group, *backend, keys)) {
    store.create("x", TensorType(MLG_F32, {1000}));
    store.upload("x", std::vector<float>(1000, 1));
    batch = communicator->prepare(store, {{Collective::all_reduce, "x", "x", 1000, 0}});
  }
  std::unique_ptr<Backend> backend;
  TensorStore store;
  std::unique_ptr<Communicator> communicator;
  std::unique_ptr<TransferBatch> batch;
};

StubNccl slow(int milliseconds) {
  StubNccl wanted;
  wanted.slow_milliseconds = milliseconds;
  return wanted;
}

void expect_no_problem(const std::vector<std::string>& sentences) {
  for (const std::string& sentence : sentences) EXPECT_EQ(sentence, "");
}

TEST(NcclCommunicator, ALibraryThatTakesItsTimeIsAskedAgain) {
  const StubFaults faults(slow(20));
  expect_no_problem(run_ranks(2, [](HostGroup& group) {
    Rank rank(group);
    for (int turn = 0; turn < 3; ++turn) {
      rank.batch->submit();
      rank.batch->join();
    }
    EXPECT_EQ(rank.store.download_as<float>("x"), std::vector<float>(1000, 8));
    EXPECT_EQ(rank.communicator->transfers().completed, 3u);
    group.barrier();
  }));
}

TEST(NcclCommunicator, ALibraryThatNeverTakesABatchIsGivenUpAtTheTimeout) {
  expect_no_problem(run_ranks(2, [](HostGroup& group) {
    Rank rank(group, "timeout = 0.2");
    group.barrier();
    {
      const StubFaults faults(slow(60000));
      rank.batch->submit();
      group.barrier();
    }
    const std::string text = sentence_of([&] { rank.batch->join(); });
    EXPECT_TRUE(text.find("NCCL did not take a batch of transfers within 0.2 s") != std::string::npos ||
                text.find("could not take a batch") != std::string::npos)
        << text;
    group.barrier();
  }));
}

TEST(NcclCommunicator, RanksThatDoNotComeAreMissedInTime) {
  ThreadGroups groups(2);
  const std::unique_ptr<Backend> backend = make_backend(kWorld);
  CommunicatorOptions options;
  options.open_seconds = 0.2;
  const std::string text =
      sentence_of([&] { make_communicator(kWorld, groups.group(0), *backend, "", options); });
  EXPECT_TRUE(contains(text, "'communicator/gpu of rank 1' within 0.2 s"));
}

TEST(NcclCommunicator, AnErrorOfTheNetworkIsReported) {
  expect_no_problem(run_ranks(2, [](HostGroup& group) {
    Rank rank(group);
    group.barrier();
    {
      StubNccl wanted;
      wanted.fails = 1;
      const StubFaults faults(wanted);
      const std::string text = sentence_of([&] { rank.communicator->transfers(); });
      EXPECT_TRUE(contains(text, "network error"));
      group.barrier();
    }
    EXPECT_NE(sentence_of([&] { rank.batch->submit(); }), "") << "what failed once goes on failing";
    group.barrier();
  }));
}

TEST(NcclCommunicator, AbortEndsATransferThatHangsAndTheDeviceGoesOn) {
  StubNccl wanted;
  wanted.rank = 1;
  wanted.hangs = 1;
  const StubFaults faults(wanted);
  expect_no_problem(run_ranks(2, [](HostGroup& group) {
    Rank rank(group);
    rank.batch->submit();
    rank.batch->join();
    EXPECT_EQ(rank.communicator->transfers().completed, 0u);
    group.barrier();
    std::thread other([&] { rank.communicator->abort(); });
    rank.backend->synchronize();
    other.join();
    EXPECT_TRUE(contains(sentence_of([&] { rank.batch->submit(); }), "aborted"));
    EXPECT_TRUE(contains(sentence_of([&] { rank.communicator->transfers(); }), "aborted"));
    group.barrier();
  }));
}

// Until `text` comes, but not for ever.
template <typename Count>
std::string awaited(const std::string& text, Count&& count) {
  std::string seen;
  for (int turn = 0; turn < 2000 && seen != text; ++turn) {
    const TransferCount now = count();
    seen = std::to_string(now.submitted) + " begun, " + std::to_string(now.completed) + " done";
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return seen;
}

TEST(NcclCommunicator, WhatIsDoneIsCountedBeforeItIsJoined) {
  expect_no_problem(run_ranks(2, [](HostGroup& group) {
    Rank rank(group);
    const auto count = [&] { return rank.communicator->transfers(); };
    EXPECT_EQ(awaited("0 begun, 0 done", count), "0 begun, 0 done");
    rank.batch->submit();
    EXPECT_EQ(awaited("1 begun, 1 done", count), "1 begun, 1 done");
    rank.batch->join();
    rank.batch->submit();
    EXPECT_EQ(awaited("2 begun, 2 done", count), "2 begun, 2 done");
    rank.batch->join();
    group.barrier();
  }));
}

// The rank whose device stands still has not come to the transfer that the other one waits in.
TEST(NcclCommunicator, ADeviceThatStandsStillBeforeATransferHasNotBegunIt) {
  expect_no_problem(run_ranks(2, [](HostGroup& group) {
    Rank rank(group);
    const auto count = [&] { return rank.communicator->transfers(); };
    {
      std::optional<StubGate> gate;
      if (group.rank() == 1) gate.emplace(*rank.backend);
      rank.batch->submit();
      rank.batch->join();
      const std::string expected = group.rank() == 0 ? "1 begun, 0 done" : "0 begun, 0 done";
      EXPECT_EQ(awaited(expected, count), expected);
      group.barrier();
      EXPECT_EQ(awaited(expected, count), expected);
      group.barrier();
    }
    EXPECT_EQ(awaited("1 begun, 1 done", count), "1 begun, 1 done");
    group.barrier();
  }));
}

// Rank 1's device keeps the transfer from ending, and rank 0's has other work meanwhile.
TEST(NcclCommunicator, TheBackendWorksDuringATransferUntilItIsJoined) {
  expect_no_problem(run_ranks(2, [](HostGroup& group) {
    Rank rank(group);
    rank.store.create("y", TensorType(MLG_F32, {10}));
    {
      std::optional<StubGate> gate;
      if (group.rank() == 1) gate.emplace(*rank.backend);
      rank.batch->submit();
      if (group.rank() == 0) {
        rank.store.upload("y", std::vector<float>(10, 3));
        EXPECT_EQ(rank.store.download_as<float>("y"), std::vector<float>(10, 3));
        EXPECT_EQ(rank.communicator->transfers().completed, 0u);
      }
      group.barrier();
    }
    rank.batch->join();
    EXPECT_EQ(rank.store.download_as<float>("x"), std::vector<float>(1000, 2));
    group.barrier();
  }));
}

TEST(NcclCommunicator, TwoRanksOnOneGpuAreRefused) {
  const StubSharedCard card;
  for (const std::string& sentence : run_ranks(2, [](HostGroup& group) { Rank rank(group); })) {
    EXPECT_TRUE(contains(
        sentence, "ranks 0 and 1 have one GPU, GPU-abababab-abab-abab-abab-abababababab; start no more"));
  }
}

TEST(NcclCommunicator, AnOldLibraryIsRefused) {
  const std::unique_ptr<Backend> backend = make_backend(kWorld);
  StubNccl wanted;
  wanted.version = 21602;
  const StubFaults faults(wanted);
  ThreadGroups groups(1);
  const std::string text = sentence_of([&] { make_communicator(kWorld, groups.group(0), *backend); });
  EXPECT_TRUE(contains(text, "NCCL 2.16 was found; install NCCL 2.18 or newer"));
}

TEST(NcclCommunicator, MemoryThatIsNoGpusIsRefused) {
  const std::unique_ptr<Backend> backend = make_cpu_backend(1);
  ThreadGroups groups(1);
  const std::string text = sentence_of([&] { make_communicator(kWorld, groups.group(0), *backend); });
  EXPECT_TRUE(contains(text, "'nccl' moves memory of a GPU"));
}

}  // namespace
}  // namespace mulligan::communicator_nccl_test
