// The nccl communicator on a library that fails and hangs; NCCL's stub names call and argument of a misuse.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <thread>

#include "plugins/communicators/nccl/library.h"
#include "tests/support/sentence.h"
#include "tests/unit/communicator_worlds.h"

namespace mulligan::communicator_nccl_test {
namespace {

const CommunicatorWorld kWorld{"nccl", "stub", 2};

struct Rank : WorldRank {
  explicit Rank(HostGroup& group) : WorldRank(kWorld, group) {}
};

TEST(NcclCommunicator, RanksThatDoNotComeAreMissedInTime) {
  ThreadGroups groups(2);
  const std::unique_ptr<Backend> backend = make_backend(kWorld);
  CommunicatorOptions options;
  options.open_seconds = 0.2;
  EXPECT_TRUE(refuses([&] { make_communicator(kWorld, groups.group(0), *backend, "", options); },
                      "'communicator/gpu of rank 1' within 0.2 s"));
}

TEST(NcclCommunicator, AnErrorOfTheNetworkIsReported) {
  expect_ranks(2, [](HostGroup& group) {
    Rank rank(group);
    group.barrier();
    {
      StubNccl wanted;
      wanted.fails = 1;
      const StubFaults faults(wanted);
      EXPECT_TRUE(refuses([&] { rank.communicator->transfers(); }, "network error"));
      group.barrier();
    }
    EXPECT_NE(sentence_of([&] { rank.batch->submit(); }), "") << "what failed once goes on failing";
    group.barrier();
  });
}

TEST(NcclCommunicator, AbortEndsATransferThatHangsAndTheDeviceGoesOn) {
  StubNccl wanted;
  wanted.rank = 1;
  wanted.hangs = 1;
  const StubFaults faults(wanted);
  expect_ranks(2, [](HostGroup& group) {
    Rank rank(group);
    rank.batch->run();
    EXPECT_EQ(rank.communicator->transfers().completed, 0u);
    group.barrier();
    std::thread other([&] { rank.communicator->abort(); });
    rank.backend->synchronize();
    other.join();
    EXPECT_TRUE(refuses([&] { rank.batch->submit(); }, "aborted"));
    EXPECT_TRUE(refuses([&] { rank.communicator->transfers(); }, "aborted"));
    group.barrier();
  });
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
  expect_ranks(2, [](HostGroup& group) {
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
  });
}

// The rank whose device stands still has not come to the transfer that the other one waits in.
TEST(NcclCommunicator, ADeviceThatStandsStillBeforeATransferHasNotBegunIt) {
  expect_ranks(2, [](HostGroup& group) {
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
  });
}

// Rank 1's device keeps the transfer from ending, and rank 0's has other work meanwhile.
TEST(NcclCommunicator, TheBackendWorksDuringATransferUntilItIsJoined) {
  expect_ranks(2, [](HostGroup& group) {
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
  });
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
  EXPECT_TRUE(refuses([&] { make_communicator(kWorld, *make_single_group(), *backend); },
                      "NCCL 2.16 was found; install NCCL 2.18 or newer"));
}

struct Difference {
  const char* what;
  std::vector<Transfer> on_rank_0, on_rank_1;
  const char* says;
};

// What both ranks' communicators say of transfers that differ.
void expect_refused(const Difference& difference) {
  SCOPED_TRACE(difference.what);
  const StubFaults fresh{StubNccl{}};
  expect_ranks(2, [&](HostGroup& group) {
    const std::unique_ptr<Backend> backend = make_backend(kWorld);
    TensorStore store(*backend);
    const std::unique_ptr<Communicator> communicator = make_communicator(kWorld, group, *backend, "");
    store.create("x", TensorType(MLG_F32, {1000}));
    store.create("y", TensorType(MLG_F64, {1000}));
    const std::unique_ptr<TransferBatch> batch =
        communicator->prepare(store, group.rank() == 0 ? difference.on_rank_0 : difference.on_rank_1);
    std::string text;
    try {
      batch->submit();
      for (int turn = 0; turn < 5000; ++turn) {
        communicator->transfers();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    } catch (const Error& error) {
      text = error.what();
    }
    EXPECT_TRUE(contains(text, difference.says));
    EXPECT_TRUE(refuses([&] { batch->submit(); }, "invalid usage")) << "sticky";
    group.barrier();
    communicator->abort();
  });
}

TEST(NcclMisuse, OfCollectivesThatDifferBetweenRanksNamesThem) {
  const Transfer sum{Collective::all_reduce, "x", "x", 1000, 0},
      wide{Collective::all_reduce, "y", "y", 1000, 0}, first{Collective::broadcast, "x", "x", 1000, 0},
      second{Collective::broadcast, "x", "x", 1000, 1};
  Transfer half = sum;
  half.count = 500;
  for (const Difference& difference :
       {Difference{"count",
                   {sum},
                   {half},
                   "ncclAllReduce, number 1 of its group: argument count is 500 on rank 1 "
                   "and 1000 on rank 0"},
        Difference{"type",
                   {sum},
                   {wide},
                   "ncclAllReduce, number 1 of its group: argument datatype is 8 on rank 1 and 7 on rank 0"},
        Difference{"order",
                   {sum, first},
                   {first, sum},
                   "ncclBroadcast, number 1 of its group on rank 1, is ncclAllReduce on rank 0"},
        Difference{"root",
                   {first},
                   {second},
                   "ncclBroadcast, number 1 of its group: argument root is 1 on rank 1 and 0 on rank 0"},
        Difference{
            "fewer", {sum, wide}, {sum}, "ncclGroupEnd: the group has 1 calls on rank 1 and 2 on rank 0"}}) {
    expect_refused(difference);
  }
}

// The library's functions as the plugin has them, of one rank.
struct OneRank {
  using Handle = void*;
  OneRank() {
    nccl_ranks::UniqueId id{};
    nccl_ranks::CommConfig config;
    call("ncclGetUniqueId", &id);
    function<int(Handle*, int, nccl_ranks::UniqueId, int, nccl_ranks::CommConfig*)>("ncclCommInitRankConfig")(
        &comm, 1, id, 0, &config);
    int state = nccl_ranks::kInProgress;
    while (state == nccl_ranks::kInProgress) call("ncclCommGetAsyncError", comm, &state);
    EXPECT_EQ(state, nccl_ranks::kSuccess);
  }
  ~OneRank() {
    if (comm) call("ncclCommDestroy", comm);
    dlclose(library);
  }
  template <typename Signature>
  Signature* function(const char* name) {
    return reinterpret_cast<Signature*>(dlsym(library, name));
  }
  template <typename... Arguments>
  int call(const char* name, Arguments... arguments) {
    return function<int(Arguments...)>(name)(arguments...);
  }
  // What a transfer within a group says. `last`: the operation or root.
  std::string transfer(const char* name, const void* from, void* to, std::size_t count, int dtype, int last) {
    call("ncclGroupStart");
    const int result = function<int(const void*, void*, std::size_t, int, int, Handle, void*)>(name)(
        from, to, count, dtype, last, comm, backend->queue().stream);
    call("ncclGroupEnd");
    return said(result);
  }
  std::string all_reduce(const void* from, void* to) {
    return transfer("ncclAllReduce", from, to, 1000, nccl_ranks::kFloat32, nccl_ranks::kSum);
  }
  std::string said(int result) {
    return result == 0 ? "" : function<const char*(int)>("ncclGetErrorString")(result);
  }

  const StubFaults fresh{StubNccl{}};
  std::unique_ptr<Backend> backend = make_backend(kWorld);
  const DeviceBuffer x = backend->allocate(4000);
  void* library = dlopen(stub_nccl_library().c_str(), RTLD_NOW);
  Handle comm = nullptr;
};

// The library keeps the sentence of the first misuse, so each has a rank of its own.
TEST(NcclMisuse, OfMemoryRootsAndGroupsIsNamed) {
  const std::pair<std::function<std::string(OneRank&)>, const char*> cases[] = {
      {[](OneRank& rank) { return rank.all_reduce(rank.x.address(), rank.x.address()); }, ""},
      {[](OneRank& rank) { return rank.all_reduce(std::vector<float>(1000).data(), rank.x.address()); },
       "ncclAllReduce: argument sendbuff takes 4000 bytes where nothing was allocated"},
      {[](OneRank& rank) {
         return rank.all_reduce(rank.x.address(), rank.backend->allocate(3996).address());
       },
       "ncclAllReduce: argument recvbuff takes 4000 bytes, 0 bytes into an allocation of 3996"},
      {[](OneRank& rank) {
         void* gone = rank.backend->allocate(4000).address();
         return rank.all_reduce(rank.x.address(), gone);
       },
       "ncclAllReduce: argument recvbuff takes 4000 bytes of an allocation of 4000 that was freed"},
      {[](OneRank& rank) {
         return rank.transfer("ncclBroadcast", rank.x.address(), rank.x.address(), 4000, nccl_ranks::kUint8,
                              3);
       },
       "ncclBroadcast: argument root or peer is 3 of 1 ranks"},
      {[](OneRank& rank) {
         rank.call("ncclGroupStart");
         rank.call("ncclCommDestroy", std::exchange(rank.comm, nullptr));
         const std::string said = rank.said(5);
         rank.call("ncclGroupEnd");
         return said;
       },
       "ncclGroupEnd: a group was begun and not ended when its communicator ended"}};
  for (const auto& [misuse, says] : cases) {
    OneRank rank;
    EXPECT_EQ(misuse(rank), *says ? std::string("invalid usage: ") + says : "");
  }
}

}  // namespace
}  // namespace mulligan::communicator_nccl_test
