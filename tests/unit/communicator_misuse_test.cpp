// NCCL's stub judges: it refuses collectives that differ between ranks and memory that does not exist, by a
// sentence that names call and argument. Nothing works afterwards.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <thread>

#include "plugins/communicators/nccl/library.h"
#include "tests/support/sentence.h"
#include "tests/unit/communicator_worlds.h"

namespace mulligan::communicator_misuse_test {
namespace {

const CommunicatorWorld kWorld{"nccl", "stub", 2};
using Transfers = std::vector<Transfer>;

struct Difference {
  const char* what;
  Transfers on_rank_0, on_rank_1;
  const char* says;
};

// What both ranks' communicators say of transfers that differ.
void expect_refused(const Difference& difference) {
  SCOPED_TRACE(difference.what);
  const StubFaults fresh{StubNccl{}};
  for (const std::string& problem : run_ranks(2, [&](HostGroup& group) {
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
         EXPECT_TRUE(contains(sentence_of([&] { batch->submit(); }), "invalid usage")) << "sticky";
         group.barrier();
         communicator->abort();
       })) {
    EXPECT_EQ(problem, "");
  }
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
class OneRank : public testing::Test {
 protected:
  using Handle = void*;
  OneRank() {
    backend_ = make_backend(kWorld);
    library_ = dlopen(stub_nccl_library().c_str(), RTLD_NOW);
    nccl_ranks::UniqueId id{};
    nccl_ranks::CommConfig config;
    call("ncclGetUniqueId", &id);
    function<int(Handle*, int, nccl_ranks::UniqueId, int, nccl_ranks::CommConfig*)>("ncclCommInitRankConfig")(
        &comm_, 1, id, 0, &config);
    int state = nccl_ranks::kInProgress;
    while (state == nccl_ranks::kInProgress) call("ncclCommGetAsyncError", comm_, &state);
    EXPECT_EQ(state, nccl_ranks::kSuccess);
  }
  ~OneRank() override {
    if (comm_) call("ncclCommDestroy", comm_);
    dlclose(library_);
  }
  template <typename Signature>
  Signature* function(const char* name) {
    return reinterpret_cast<Signature*>(dlsym(library_, name));
  }
  template <typename... Arguments>
  int call(const char* name, Arguments... arguments) {
    return function<int(Arguments...)>(name)(arguments...);
  }
  // What an all_reduce within a group says.
  std::string all_reduce(const void* from, void* to, std::size_t count) {
    call("ncclGroupStart");
    const int result =
        function<int(const void*, void*, std::size_t, int, int, Handle, void*)>("ncclAllReduce")(
            from, to, count, nccl_ranks::kFloat32, nccl_ranks::kSum, comm_, backend_->queue().stream);
    call("ncclGroupEnd");
    return said(result);
  }
  std::string said(int result) {
    return result == 0 ? "" : function<const char*(int)>("ncclGetErrorString")(result);
  }

  const StubFaults fresh_{StubNccl{}};
  std::unique_ptr<Backend> backend_;
  void* library_ = nullptr;
  Handle comm_ = nullptr;
};

TEST_F(OneRank, MisuseOfMemoryNamesTheArgument) {
  const DeviceBuffer x = backend_->allocate(4000);
  EXPECT_EQ(all_reduce(x.address(), x.address(), 1000), "");
  std::vector<float> host(1000);
  EXPECT_EQ(all_reduce(host.data(), x.address(), 1000),
            "invalid usage: ncclAllReduce: argument sendbuff takes 4000 bytes where nothing was allocated");
}
TEST_F(OneRank, AShortBufferIsNamed) {
  const DeviceBuffer x = backend_->allocate(4000), y = backend_->allocate(3996);
  EXPECT_EQ(
      all_reduce(x.address(), y.address(), 1000),
      "invalid usage: ncclAllReduce: argument recvbuff takes 4000 bytes, 0 bytes into an allocation of 3996");
}
TEST_F(OneRank, AFreedBufferIsNamed) {
  const DeviceBuffer x = backend_->allocate(4000);
  void* gone = backend_->allocate(4000).address();
  EXPECT_EQ(all_reduce(x.address(), gone, 1000),
            "invalid usage: ncclAllReduce: argument recvbuff takes 4000 bytes of an allocation of 4000 that "
            "was freed");
}
TEST_F(OneRank, ARootThatIsNoRankIsNamed) {
  const DeviceBuffer x = backend_->allocate(4000);
  call("ncclGroupStart");
  const int result = function<int(const void*, void*, std::size_t, int, int, Handle, void*)>("ncclBroadcast")(
      x.address(), x.address(), 4000, nccl_ranks::kUint8, 3, comm_, backend_->queue().stream);
  call("ncclGroupEnd");
  EXPECT_EQ(said(result), "invalid usage: ncclBroadcast: argument root or peer is 3 of 1 ranks");
}
TEST_F(OneRank, AGroupThatIsNotEndedIsSeen) {
  call("ncclGroupStart");
  call("ncclCommDestroy", std::exchange(comm_, nullptr));
  EXPECT_EQ(said(5),
            "invalid usage: ncclGroupEnd: a group was begun and not ended when its communicator ended");
  call("ncclGroupEnd");
}

}  // namespace
}  // namespace mulligan::communicator_misuse_test
