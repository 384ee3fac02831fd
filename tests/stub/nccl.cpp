// A stub of libnccl.so.2 on the stub of the driver. It moves real data between ranks, which are processes of one machine or
// threads, and it can be slow, fail and hang (stub_nccl.h). Collectives run on the stream they are given. A group is
// enqueued as a whole; if the stub is slow, this happens after the call has returned.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "plugins/communicators/nccl/library.h"
#include "tests/stub/nccl_links.h"
#include "tests/stub/nccl_operations.h"
#include "tests/stub/report.h"
#include "tests/stub/stub_nccl.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

extern "C" int cuLaunchHostFunc(void* stream, void (*function)(void*), void* data);
extern "C" const char* stub_memory_fault(const void* address, std::size_t bytes);

namespace {

using namespace mulligan::nccl_ranks;
using namespace stub;

constexpr int kInvalidUsage = 5, kRemoteError = 6;

StubNccl of_environment() {
  StubNccl faults;
  const char* text = std::getenv("MULLIGAN_STUB_NCCL");
  std::istringstream words(text ? text : "");
  for (std::string word; words >> word;) {
    const std::size_t split = word.find('=');
    const std::string name = word.substr(0, split);
    int* value = name == "version"             ? &faults.version
                 : name == "rank"              ? &faults.rank
                 : name == "after"             ? &faults.after
                 : name == "slow_milliseconds" ? &faults.slow_milliseconds
                 : name == "fails"             ? &faults.fails
                 : name == "hangs"             ? &faults.hangs
                 : name == "blocks"            ? &faults.blocks
                 : name == "breaks"            ? &faults.breaks
                                               : nullptr;
    if (!value || split == std::string::npos) std::abort();  // a test that would test nothing
    *value = std::atoi(word.c_str() + split + 1);
  }
  return faults;
}

// What some rank of this process did wrong first: the text of its error, which stays.
std::mutex violation_mutex;
std::string violation = "invalid usage";
int violate(const std::string& sentence) {
  const std::lock_guard lock(violation_mutex);
  if (violation == "invalid usage") violation += ": " + sentence;
  return kInvalidUsage;
}

// Calls that were judged. What was wrong with one is told at the end of the process.
std::atomic<long> judged = 0;
struct Report {
  ~Report() { stubs::report("nccl", judged, violation == "invalid usage" ? std::string() : violation); }
} at_the_end;

std::mutex faults_mutex;
StubNccl set_faults = of_environment();

// One rank's.
struct Communicator {
  Communicator(int rank, int size) : rank(rank), size(size), links(rank, size) {}
  StubNccl faults() const {
    const std::lock_guard lock(faults_mutex);
    const bool mine = (set_faults.rank < 0 || set_faults.rank == rank) && groups >= set_faults.after;
    return mine ? set_faults : StubNccl{};
  }
  void end() {
    links.stop();
    if (background.joinable()) background.join();
  }

  const int rank, size;
  Links links;
  std::atomic<int> state{kInProgress};
  std::atomic<int> groups{0};
  std::thread background;  // meets the others; enqueues what is slow
};
using Handle = std::shared_ptr<Communicator>;

Handle& handle(void* communicator) {
  return *static_cast<Handle*>(communicator);
}

struct Group {
  Handle communicator;
  void* stream = nullptr;
  std::vector<Operation> operations;
};
thread_local Group group;
thread_local int depth = 0;

struct Work {
  Handle communicator;
  std::vector<Operation> operations;
  StubNccl faults;
};

// On the stream. What fails stays under way, as a kernel of NCCL does, until the communicator is aborted.
void run(void* data) {
  const std::unique_ptr<Work> work(static_cast<Work*>(data));
  Communicator& own = *work->communicator;
  if (work->faults.hangs == 1) return own.links.wait_for_stop();
  if (work->faults.breaks) own.links.lose();
  std::vector<std::string> all;
  if (!own.links.exchange(shown(work->operations, own.rank, own.size), all)) {
    own.state = kRemoteError;
    return own.links.wait_for_stop();
  }
  if (const std::string wrong = take(all, work->operations, own.rank); !wrong.empty()) {
    own.state = violate(wrong);
    return own.links.wait_for_stop();
  }
  if (work->faults.hangs == 2) own.links.wait_for_stop();
}

// As it stands when it is asked for: NCCL does not look again.
bool in_live_memory(const Operation& one, const Communicator& own) {
  const auto judged = [&](const char* argument, const void* address, std::size_t bytes) {
    const char* fault = bytes == 0 ? nullptr : stub_memory_fault(address, bytes);
    if (fault)
      violate(std::string(name_of(one.kind)) + ": argument " + argument + " takes " + std::to_string(bytes) +
              " bytes" + fault);
    return fault == nullptr;
  };
  return judged("sendbuff", one.from, bytes_read(one, own.rank, own.size)) &&
         judged("recvbuff", one.to, bytes_written(one, own.rank, own.size));
}

int enqueue(Operation operation, void* communicator, void* stream) {
  const Communicator& own = *handle(communicator);
  if (stubs::is_planted("nccl", ++judged)) --operation.count;
  if (depth == 0) return violate(std::string(name_of(operation.kind)) + ": outside of a group");
  if (operation.peer < 0 || operation.peer >= own.size)
    return violate(std::string(name_of(operation.kind)) + ": argument root or peer is " +
                   std::to_string(operation.peer) + " of " + std::to_string(own.size) + " ranks");
  if (!in_live_memory(operation, own)) return kInvalidUsage;
  if (group.communicator && group.stream != stream)
    return violate(std::string(name_of(operation.kind)) + ": argument stream is another than its group's");
  group.operations.push_back(operation);
  group.communicator = handle(communicator);
  group.stream = stream;
  return kSuccess;
}

enum Call { kGroupEnd = 1, kGetAsyncError, kAbort, kDestroy };

// Whatever the process is told meanwhile.
void block_in(Call call, const Communicator& communicator) {
  while (communicator.faults().blocks == call) std::this_thread::sleep_for(std::chrono::seconds(1));
}

int end(void* communicator) {
  if (depth > 0) violate("ncclGroupEnd: a group was begun and not ended when its communicator ended");
  const std::unique_ptr<Handle> own(&handle(communicator));
  (*own)->end();
  return kSuccess;
}

}  // namespace

EXPORTED void stub_nccl(const StubNccl& wanted) {
  const std::lock_guard lock(faults_mutex);
  set_faults = wanted;
  const std::lock_guard other(violation_mutex);
  violation = "invalid usage";
}
EXPORTED int ncclGetVersion(int* version) {
  const std::lock_guard lock(faults_mutex);
  *version = set_faults.version;
  return kSuccess;
}
EXPORTED int ncclGetUniqueId(UniqueId* id) {
  const std::string name = Links::listen();
  std::memset(id->bytes, 0, sizeof id->bytes);
  std::memcpy(id->bytes, name.data(), name.size());
  return name.empty() ? kRemoteError : kSuccess;
}
EXPORTED int ncclCommInitRankConfig(void** communicator, int size, UniqueId id, int rank,
                                    CommConfig* config) {
  if (config->blocking != 0 || config->magic != 0xcafebeef) return kInvalidUsage;
  auto made = std::make_shared<Communicator>(rank, size);
  made->background = std::thread([&own = *made, name = std::string(id.bytes)] {
    const bool met = own.links.meet(name) && own.links.pause(own.faults().slow_milliseconds);
    own.state = met ? kSuccess : kRemoteError;
  });
  *communicator = new Handle(std::move(made));
  return kInProgress;
}
EXPORTED int ncclCommGetAsyncError(void* communicator, int* state) {
  const Communicator& own = *handle(communicator);
  block_in(kGetAsyncError, own);
  *state = own.faults().fails ? kRemoteError : own.state.load();
  return kSuccess;
}
EXPORTED int ncclCommFinalize(void*) {
  return kSuccess;
}
EXPORTED int ncclCommDestroy(void* communicator) {
  block_in(kDestroy, *handle(communicator));
  return end(communicator);
}
EXPORTED int ncclCommAbort(void* communicator) {
  block_in(kAbort, *handle(communicator));
  return end(communicator);
}
EXPORTED const char* ncclGetErrorString(int result) {
  if (result == kRemoteError) return "remote process exited or there was a network error";
  const std::lock_guard lock(violation_mutex);
  thread_local std::string text;
  text = violation;
  return text.c_str();
}
EXPORTED const char* ncclGetLastError(void*) {
  return "";
}
EXPORTED int ncclGroupStart() {
  ++depth;
  return kSuccess;
}
EXPORTED int ncclGroupEnd() {
  if (depth == 0) return violate("ncclGroupEnd: no group was begun");
  if (--depth > 0) return kSuccess;
  const Group ended = std::exchange(group, {});
  if (!ended.communicator) return kSuccess;
  Communicator& own = *ended.communicator;
  const StubNccl faults = own.faults();
  block_in(kGroupEnd, own);
  ++own.groups;
  const auto launch = [ended, faults] {
    cuLaunchHostFunc(ended.stream, run, new Work{ended.communicator, ended.operations, faults});
  };
  if (faults.slow_milliseconds == 0) {
    launch();
    return kSuccess;
  }
  if (own.background.joinable()) own.background.join();
  own.state = kInProgress;
  own.background = std::thread([&own, launch, milliseconds = faults.slow_milliseconds] {
    if (!own.links.pause(milliseconds)) return;
    launch();
    int in_progress = kInProgress;  // unless the group has failed already
    own.state.compare_exchange_strong(in_progress, kSuccess);
  });
  return kInProgress;
}
EXPORTED int ncclAllReduce(const void* from, void* to, std::size_t count, int dtype, int, void* comm,
                           void* stream) {
  return enqueue({Kind::all_reduce, from, to, count, dtype, 0}, comm, stream);
}
EXPORTED int ncclReduceScatter(const void* from, void* to, std::size_t count, int dtype, int, void* comm,
                               void* stream) {
  return enqueue({Kind::reduce_scatter, from, to, count, dtype, 0}, comm, stream);
}
EXPORTED int ncclReduce(const void* from, void* to, std::size_t count, int dtype, int, int root, void* comm,
                        void* stream) {
  return enqueue({Kind::reduce, from, to, count, dtype, root}, comm, stream);
}
EXPORTED int ncclAllGather(const void* from, void* to, std::size_t count, int dtype, void* comm,
                           void* stream) {
  return enqueue({Kind::all_gather, from, to, count, dtype, 0}, comm, stream);
}
EXPORTED int ncclBroadcast(const void* from, void* to, std::size_t count, int dtype, int root, void* comm,
                           void* stream) {
  return enqueue({Kind::broadcast, from, to, count, dtype, root}, comm, stream);
}
EXPORTED int ncclSend(const void* from, std::size_t count, int dtype, int peer, void* comm, void* stream) {
  return enqueue({Kind::send, from, nullptr, count, dtype, peer}, comm, stream);
}
EXPORTED int ncclRecv(void* to, std::size_t count, int dtype, int peer, void* comm, void* stream) {
  return enqueue({Kind::receive, nullptr, to, count, dtype, peer}, comm, stream);
}
