// A stand-in for libnccl.so.2 on the stand-in driver: moves real data between the ranks, which are threads of
// one process, and can be slow, fail and hang (stand_in_nccl). Collectives run on the stream they are given; a
// group is enqueued as a whole.
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "plugins/communicators/nccl/library.h"
#include "tests/stand_in/stand_in_nccl.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

extern "C" int cuLaunchHostFunc(void* stream, void (*function)(void*), void* data);

namespace {

using mulligan::nccl_ranks::CommConfig;
using mulligan::nccl_ranks::UniqueId;
using namespace mulligan::nccl_ranks;

constexpr int kRemoteError = 6, kInvalidUsage = 5;

enum class Kind { all_reduce, reduce_scatter, all_gather, broadcast, send, receive };
struct Operation {
  Kind kind;
  const void* from;
  void* to;
  std::size_t count;
  int dtype, peer;
};
std::size_t bytes_of(int dtype) {
  return dtype == kFloat64 ? 8 : dtype == kFloat32 ? 4 : dtype == kBfloat16 ? 2 : 1;
}

// One run's ranks. Groups are numbered; a rank shows its operations of a group, and when all have come each
// takes its results.
struct World {
  std::mutex mutex;
  std::condition_variable changed;
  int size = 0, here = 0;
  bool aborted = false;
  std::map<unsigned long, std::vector<std::vector<Operation>>> shown;
  std::map<unsigned long, int> came, left;
};
struct Communicator {
  std::shared_ptr<World> world;
  int rank = 0;
  unsigned long groups = 0;
  std::chrono::steady_clock::time_point settled{};  // until then: in progress
};

std::mutex worlds_mutex;
std::map<std::string, std::weak_ptr<World>> worlds;
StandInNccl faults;
thread_local std::vector<Operation> group;
thread_local Communicator* group_communicator = nullptr;
thread_local void* group_stream = nullptr;
thread_local int depth = 0;

float value_of(std::uint16_t bits) {
  const std::uint32_t word = static_cast<std::uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &word, 4);
  return value;
}
std::uint16_t bits_of(float value) {
  std::uint32_t word;
  std::memcpy(&word, &value, 4);
  return static_cast<std::uint16_t>((word + 0x7fff + ((word >> 16) & 1)) >> 16);
}

template <typename Value>
void add(const void* from, std::vector<char>& to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    Value a, b;
    std::memcpy(&a, to.data() + i * sizeof(Value), sizeof(Value));
    std::memcpy(&b, static_cast<const char*>(from) + i * sizeof(Value), sizeof(Value));
    if constexpr (sizeof(Value) == 2) {
      a = bits_of(value_of(a) + value_of(b));
    } else {
      a += b;
    }
    std::memcpy(to.data() + i * sizeof(Value), &a, sizeof(Value));
  }
}

std::vector<char> sum(const std::vector<std::vector<Operation>>& ranks, std::size_t index,
                      std::size_t first) {
  const Operation& one = ranks[0][index];
  const std::size_t bytes = one.count * bytes_of(one.dtype);
  std::vector<char> result(bytes);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const char* from = static_cast<const char*>(ranks[rank][index].from) + first * bytes;
    if (rank == 0) {
      std::memcpy(result.data(), from, bytes);
    } else if (one.dtype == kFloat64) {
      add<double>(from, result, one.count);
    } else if (one.dtype == kBfloat16) {
      add<std::uint16_t>(from, result, one.count);
    } else {
      add<float>(from, result, one.count);
    }
  }
  return result;
}

// What rank `rank` gets by its operation `index`; `received`: how many it has had from each peer.
std::vector<char> result_of(const std::vector<std::vector<Operation>>& ranks, std::size_t rank,
                            std::size_t index, std::map<int, std::size_t>& received) {
  const Operation& one = ranks[rank][index];
  const std::size_t bytes = one.count * bytes_of(one.dtype);
  const auto copy_of = [&](const void* from) {
    return std::vector<char>(static_cast<const char*>(from), static_cast<const char*>(from) + bytes);
  };
  switch (one.kind) {
    case Kind::all_reduce:
      return sum(ranks, index, 0);
    case Kind::reduce_scatter:
      return sum(ranks, index, rank);
    case Kind::broadcast:
      return copy_of(ranks[static_cast<std::size_t>(one.peer)][index].from);
    case Kind::all_gather: {
      std::vector<char> all;
      for (const auto& other : ranks) {
        const std::vector<char> part = copy_of(other[index].from);
        all.insert(all.end(), part.begin(), part.end());
      }
      return all;
    }
    case Kind::receive: {
      std::size_t skip = received[one.peer]++;
      for (const Operation& sent : ranks[static_cast<std::size_t>(one.peer)]) {
        if (sent.kind == Kind::send && sent.peer == static_cast<int>(rank) && skip-- == 0)
          return copy_of(sent.from);
      }
      return {};
    }
    case Kind::send:
      break;
  }
  return {};
}

struct Work {
  std::shared_ptr<World> world;
  std::size_t rank;
  unsigned long number;
  std::vector<Operation> operations;
};

// On the stream.
void run(void* data) {
  const std::unique_ptr<Work> work(static_cast<Work*>(data));
  World& world = *work->world;
  std::unique_lock lock(world.mutex);
  const auto all_came = [&](std::map<unsigned long, int>& counter) {
    ++counter[work->number];
    world.changed.notify_all();
    world.changed.wait(lock, [&] { return world.aborted || counter[work->number] == world.size; });
    return !world.aborted;
  };
  world.changed.wait(lock, [&] { return world.aborted || faults.hang_rank != static_cast<int>(work->rank); });
  auto& shown = world.shown[work->number];
  shown.resize(static_cast<std::size_t>(world.size));
  shown[work->rank] = work->operations;
  if (world.aborted || !all_came(world.came)) return;
  std::vector<std::vector<char>> results;
  std::map<int, std::size_t> received;
  for (std::size_t i = 0; i < work->operations.size(); ++i) {
    results.push_back(result_of(shown, work->rank, i, received));
  }
  if (!all_came(world.left)) return;  // nobody reads what is written now
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i].empty()) std::memcpy(work->operations[i].to, results[i].data(), results[i].size());
  }
}

int enqueue(Operation operation, void* communicator, void* stream) {
  if (depth == 0) return kInvalidUsage;
  group.push_back(operation);
  group_communicator = static_cast<Communicator*>(communicator);
  group_stream = stream;
  return kSuccess;
}

}  // namespace

EXPORTED void stand_in_nccl(const StandInNccl& wanted) {
  faults = wanted;
}
EXPORTED int ncclGetVersion(int* version) {
  *version = faults.version;
  return kSuccess;
}
EXPORTED int ncclGetUniqueId(UniqueId* id) {
  static std::mutex mutex;
  static int count = 0;
  const std::lock_guard lock(mutex);
  const std::string name = "world " + std::to_string(++count);
  std::memset(id->bytes, 0, sizeof id->bytes);
  std::memcpy(id->bytes, name.data(), name.size());
  return kSuccess;
}
EXPORTED int ncclCommInitRankConfig(void** communicator, int size, UniqueId id, int rank,
                                    CommConfig* config) {
  if (config->blocking != 0 || config->magic != 0xcafebeef) return kInvalidUsage;
  auto* made = new Communicator;
  {
    const std::lock_guard lock(worlds_mutex);
    std::weak_ptr<World>& known = worlds[id.bytes];
    made->world = known.lock();
    if (!made->world) known = made->world = std::make_shared<World>();
  }
  made->rank = rank;
  made->settled = std::chrono::steady_clock::now() + std::chrono::milliseconds(faults.slow_milliseconds);
  const std::lock_guard lock(made->world->mutex);
  made->world->size = size;
  ++made->world->here;
  *communicator = made;
  return kInProgress;
}
EXPORTED int ncclCommGetAsyncError(void* communicator, int* state) {
  const auto& own = *static_cast<Communicator*>(communicator);
  const std::lock_guard lock(own.world->mutex);
  const bool waits = own.world->here < own.world->size || std::chrono::steady_clock::now() < own.settled;
  *state = faults.fails || own.world->aborted ? kRemoteError : waits ? kInProgress : kSuccess;
  return kSuccess;
}
EXPORTED int ncclCommFinalize(void*) {
  return kSuccess;
}
EXPORTED int ncclCommDestroy(void* communicator) {
  delete static_cast<Communicator*>(communicator);
  return kSuccess;
}
EXPORTED int ncclCommAbort(void* communicator) {
  const std::unique_ptr<Communicator> own(static_cast<Communicator*>(communicator));
  const std::lock_guard lock(own->world->mutex);
  own->world->aborted = true;
  own->world->changed.notify_all();
  return kSuccess;
}
EXPORTED const char* ncclGetErrorString(int result) {
  return result == kRemoteError ? "remote process exited or there was a network error" : "invalid usage";
}
EXPORTED const char* ncclGetLastError(void*) {
  return "";
}
EXPORTED int ncclGroupStart() {
  ++depth;
  return kSuccess;
}
EXPORTED int ncclGroupEnd() {
  if (--depth > 0) return kSuccess;
  Communicator& own = *group_communicator;
  own.settled = std::chrono::steady_clock::now() + std::chrono::milliseconds(faults.slow_milliseconds);
  auto* work =
      new Work{own.world, static_cast<std::size_t>(own.rank), own.groups++, std::exchange(group, {})};
  cuLaunchHostFunc(group_stream, run, work);
  return faults.slow_milliseconds > 0 ? kInProgress : kSuccess;
}
EXPORTED int ncclAllReduce(const void* from, void* to, std::size_t count, int dtype, int, void* comm,
                           void* stream) {
  return enqueue({Kind::all_reduce, from, to, count, dtype, 0}, comm, stream);
}
EXPORTED int ncclReduceScatter(const void* from, void* to, std::size_t count, int dtype, int, void* comm,
                               void* stream) {
  return enqueue({Kind::reduce_scatter, from, to, count, dtype, 0}, comm, stream);
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
