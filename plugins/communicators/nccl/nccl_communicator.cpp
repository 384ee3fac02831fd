// The communicator of GPU ranks: NCCL, whose library is opened when a run needs it. Its communicator never
// blocks: what takes time is asked after until the deadline. Batches go to a stream of their own, ordered
// with the backend's by events, so that transfers and kernels overlap.
#include <net/if.h>
#include <mulligan/communicator.hpp>
#include <mulligan/dtype.hpp>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "plugins/communicators/nccl/driver.h"
#include "plugins/communicators/nccl/library.h"

namespace mulligan::nccl_ranks {

namespace {

constexpr double kFarewell =
    5;  // seconds that the end of a run waits for NCCL before it breaks the connections

// Of those that are summed over ranks.
int sum_type(std::int32_t dtype) {
  return dtype == MLG_F32 ? kFloat32 : dtype == MLG_F64 ? kFloat64 : kBfloat16;
}

std::size_t share_bytes(const sdk::Collective& one) {
  return static_cast<std::size_t>(one.count) * sdk::dtype_bytes(one.dtype);
}

// As nvidia-smi writes it: GPU-8-4-4-4-12 hexadecimal digits.
std::string uuid_text(const unsigned char (&uuid)[16]) {
  std::string text = "GPU";
  for (int i = 0; i < 16; ++i) {
    if (i == 0 || i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", uuid[i]);
    text += digits;
  }
  return text;
}

// Ranks on one GPU: NCCL finds them late, and names neither. The same sentence on every rank.
void require_own_gpu(const CudaDriver& driver, const sdk::Group& group, double seconds) {
  int device = 0;
  unsigned char uuid[16] = {};
  driver.check(driver.CtxGetDevice(&device), "CtxGetDevice");
  driver.check(driver.DeviceGetUuid(&uuid, device), "DeviceGetUuid");
  const std::string own = uuid_text(uuid);
  const auto key = [](int rank) { return "gpu of rank " + std::to_string(rank); };
  group.put(key(group.rank), {own.data(), own.size()});
  std::map<std::string, int> ranks;
  for (int rank = 0; rank < group.size; ++rank) {
    const std::string gpu = rank == group.rank ? own : group.get(key(rank), seconds);
    const auto [other, is_new] = ranks.emplace(gpu, rank);
    if (is_new) continue;
    throw sdk::Error("ranks " + std::to_string(other->second) + " and " + std::to_string(rank) +
                     " have one GPU, " + gpu +
                     "; start no more ranks on a machine than it has GPUs, and leave backend.index at -1");
  }
}

}  // namespace

struct NcclConfig {
  double timeout = 600;
  std::string library;
};

class NcclCommunicator final : public sdk::Communicator {
 public:
  static constexpr const char* summary =
      "collectives of GPU ranks by NCCL, on a stream parallel to the backend's";
  static inline const sdk::Schema<NcclConfig> schema{
      sdk::key("timeout", &NcclConfig::timeout,
               "Seconds within which NCCL must have taken a batch of transfers (the first one "
               "connects the ranks). Transfers that do not end are noticed by the run itself.")
          .range(0.01, 1e6),
      sdk::key("library", &NcclConfig::library,
               "The file of NCCL to use (libnccl.so.2); empty: what the dynamic linker finds.")};

  explicit NcclCommunicator(const NcclConfig& config) : config_(config) {}
  ~NcclCommunicator() override {
    if (!driver_) return;
    try {
      const CurrentContext current(*driver_, context_);
      Lock lock(mutex_);
      if (comm_ && !taken_by_nccl_) retire();
      if (comm_ && under_way_.empty()) {
        if (nccl_->CommFinalize(comm_) != kSuccess) settle(lock, kFarewell, "leave");
        nccl_->CommDestroy(std::exchange(comm_, nullptr));
      }
      stop();
      for (Batch* batch : std::exchange(under_way_, {})) {
        if (batch->is_released) remove(batch);
      }
      if (stream_) driver_->StreamDestroy(stream_);
    } catch (const std::exception&) {
      stop();
    }
  }

  void open(const sdk::Group& group, const mlg_queue& queue, double seconds) override {
    if (queue.kind != MLG_QUEUE_CUDA) {
      throw sdk::Error(
          "'nccl' moves memory of a GPU, and the backend's is not; "
          "set communicator.plugin to \"gloo\", or leave it out");
    }
    driver_ = std::make_unique<CudaDriver>();
    nccl_ = std::make_unique<Nccl>(config_.library);
    rank_ = group.rank;
    size_ = group.size;
    context_ = queue.context;
    backend_stream_ = queue.stream;
    const std::string interface = group.interface_name;
    if (!interface.empty() && if_nametoindex(interface.c_str()) != 0) {
      setenv("NCCL_SOCKET_IFNAME", ("=" + interface).c_str(), 0);  // "=": this name, not those that begin so
    }
    const CurrentContext current(*driver_, context_);
    driver_->check(driver_->StreamCreate(&stream_, kNonBlockingStream), "StreamCreate");
    require_own_gpu(*driver_, group, seconds);
    UniqueId id{};
    if (rank_ == 0) {
      nccl_->check(nccl_->GetUniqueId(&id), "GetUniqueId");
      group.put("nccl", {id.bytes, sizeof id.bytes});
    } else {
      const std::string bytes = group.get("nccl", seconds);
      if (bytes.size() != sizeof id.bytes)
        throw sdk::Error("rank 0 sent no identity of an NCCL communicator");
      std::memcpy(id.bytes, bytes.data(), bytes.size());
    }
    Lock lock(mutex_);
    require_sound();
    CommConfig config;
    nccl_->check(nccl_->CommInitRankConfig(&comm_, size_, id, rank_, &config), "CommInitRankConfig");
    settle(lock, seconds, "meet the other ranks");
  }
  void* prepare(std::span<const sdk::Collective> list) override {
    auto batch = std::make_unique<Batch>();
    for (const sdk::Collective& one : list) {
      if (one.count > 0) batch->list.push_back(one);
    }
    const CurrentContext current(*driver_, context_);
    const Lock lock(mutex_);
    under_way_.reserve(++batches_);
    Batch* made = batch.release();
    try {
      driver_->check(driver_->EventCreate(&made->ready, kUntimedEvent), "EventCreate");
      driver_->check(driver_->EventCreate(&made->done, kUntimedEvent), "EventCreate");
    } catch (...) {
      remove(made);
      throw;
    }
    return made;
  }
  std::uint64_t submit(void* prepared) override {
    auto* batch = static_cast<Batch*>(prepared);
    const CurrentContext current(*driver_, context_);
    Lock lock(mutex_);
    require_sound();
    finish_submit(lock);
    std::erase(under_way_, batch);  // it was joined; what comes after it tells that it is done
    driver_->check(driver_->EventRecord(batch->ready, backend_stream_), "EventRecord");
    driver_->check(driver_->StreamWaitEvent(stream_, batch->ready, 0), "StreamWaitEvent");
    if (!batch->list.empty()) {
      require(nccl_->GroupStart(), "GroupStart");
      std::string problem;
      try {
        for (const sdk::Collective& one : batch->list) enqueue(one);
      } catch (const std::exception& error) {
        problem = error.what();
      }
      const int result = nccl_->GroupEnd();
      if (!problem.empty()) fail(problem);
      require(result, "GroupEnd");
    }
    batch->ticket = ++submitted_;
    under_way_.push_back(batch);
    taken_by_nccl_ = batch;
    return batch->ticket;
  }
  void join(std::uint64_t ticket) override {
    const CurrentContext current(*driver_, context_);
    Lock lock(mutex_);
    require_sound();
    finish_submit(lock);
    for (const Batch* batch : under_way_) {
      if (batch->ticket != ticket) continue;
      driver_->check(driver_->StreamWaitEvent(backend_stream_, batch->done, 0), "StreamWaitEvent");
    }
    settle(lock, config_.timeout, "go on");
  }
  sdk::Tickets poll() override {
    const CurrentContext current(*driver_, context_);
    const Lock lock(mutex_);
    require_sound();
    int state = kSuccess;
    require(nccl_->CommGetAsyncError(comm_, &state), "CommGetAsyncError");
    if (state != kSuccess && state != kInProgress)
      fail(std::string("NCCL reports: ") + nccl_->GetErrorString(state));
    if (state == kSuccess) note_taken();
    retire();
    begun_ = std::max(begun_, completed_);
    for (const Batch* batch : under_way_) {
      if (!is_reached(batch->ready)) break;
      begun_ = std::max(begun_, batch->ticket);
    }
    return {completed_, begun_};
  }
  void abort() noexcept override {
    const Lock lock(mutex_);
    if (failure_.empty()) failure_ = "the communicator was aborted";
    stop();
  }
  void release(void* prepared) noexcept override {
    auto* batch = static_cast<Batch*>(prepared);
    CudaContext popped = nullptr;
    driver_->CtxPushCurrent(context_);
    {
      const Lock lock(mutex_);
      if (std::ranges::find(under_way_, batch) != under_way_.end()) {
        batch->is_released = true;
      } else {
        remove(batch);
      }
    }
    driver_->CtxPopCurrent(&popped);
  }

 private:
  struct Batch {
    std::vector<sdk::Collective> list;  // none of no elements
    CudaEvent ready = nullptr;          // the backend's work before it is done
    CudaEvent done = nullptr;
    std::uint64_t ticket = 0;
    bool is_released = false;  // while it was under way: deleted when it is done
  };
  using Lock = std::unique_lock<std::mutex>;
  void require_sound() const {
    if (!failure_.empty()) throw sdk::Error(failure_);
  }
  [[noreturn]] void fail(const std::string& sentence) {
    if (failure_.empty()) failure_ = sentence;
    stop();
    throw sdk::Error(failure_);
  }
  void require(int result, const char* call) {
    try {
      nccl_->check(result, call);
    } catch (const std::exception& error) {
      fail(error.what());
    }
  }
  // Waits until NCCL has done what it was asked for; others may abort meanwhile.
  void settle(Lock& lock, double seconds, const char* doing) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    for (auto pause = std::chrono::microseconds(1);;
         pause = std::min(pause * 2, std::chrono::microseconds(1000))) {
      require_sound();
      int state = kSuccess;
      require(nccl_->CommGetAsyncError(comm_, &state), "CommGetAsyncError");
      if (state == kSuccess) return;
      if (state != kInProgress) {
        fail(std::string("NCCL could not ") + doing + ": " + nccl_->GetErrorString(state));
      }
      if (std::chrono::steady_clock::now() > deadline) {
        char limit[32];
        std::snprintf(limit, sizeof limit, "%g", seconds);
        fail(std::string("NCCL did not ") + doing + " within " + limit + " s");
      }
      lock.unlock();
      std::this_thread::sleep_for(pause);
      lock.lock();
    }
  }
  void enqueue(const sdk::Collective& one) const {
    const auto count = static_cast<std::size_t>(one.count);
    const std::size_t bytes = share_bytes(one);
    const auto block = [&](const void* start, int rank) {
      return static_cast<char*>(const_cast<void*>(start)) + static_cast<std::size_t>(rank) * bytes;
    };
    switch (one.kind) {
      case MLG_ALL_REDUCE:
        return nccl_->check(
            nccl_->AllReduce(one.from, one.to, count, sum_type(one.dtype), kSum, comm_, stream_),
            "AllReduce");
      case MLG_REDUCE_SCATTER:
        return nccl_->check(
            nccl_->ReduceScatter(one.from, one.to, count, sum_type(one.dtype), kSum, comm_, stream_),
            "ReduceScatter");
      case MLG_ALL_GATHER:
        return nccl_->check(nccl_->AllGather(one.from, one.to, bytes, kUint8, comm_, stream_), "AllGather");
      case MLG_REDUCE:
        return nccl_->check(
            nccl_->Reduce(one.from, one.to, count, sum_type(one.dtype), kSum, one.root, comm_, stream_),
            "Reduce");
      case MLG_BROADCAST:
        return nccl_->check(nccl_->Broadcast(one.from, one.to, bytes, kUint8, one.root, comm_, stream_),
                            "Broadcast");
      default:
        for (int peer = 0; peer < size_; ++peer) {
          nccl_->check(nccl_->Send(block(one.from, peer), bytes, kUint8, peer, comm_, stream_), "Send");
          nccl_->check(nccl_->Recv(block(one.to, peer), bytes, kUint8, peer, comm_, stream_), "Recv");
        }
    }
  }
  // NCCL enqueues a group on a thread of its own; what follows it on the stream comes after that.
  void finish_submit(Lock& lock) {
    if (!taken_by_nccl_) return;
    settle(lock, config_.timeout, "take a batch of transfers");
    note_taken();
  }
  // NCCL has enqueued the last batch. (While settle() waited, another thread may have noted it.)
  void note_taken() {
    if (!taken_by_nccl_) return;
    driver_->check(driver_->EventRecord(std::exchange(taken_by_nccl_, nullptr)->done, stream_),
                   "EventRecord");
  }
  bool is_reached(CudaEvent event) const {
    const int result = driver_->EventQuery(event);
    if (result != kNotReady) driver_->check(result, "EventQuery");
    return result != kNotReady;
  }
  // Takes the batches that are done out of those under way.
  void retire() {
    while (!under_way_.empty() && under_way_.front() != taken_by_nccl_) {
      if (!is_reached(under_way_.front()->done)) return;
      Batch* done = under_way_.front();
      completed_ = done->ticket;
      under_way_.erase(under_way_.begin());
      if (done->is_released) remove(done);
    }
  }
  // In the backend's context.
  void remove(Batch* batch) noexcept {
    if (batch->ready) driver_->EventDestroy(batch->ready);
    if (batch->done) driver_->EventDestroy(batch->done);
    delete batch;
    --batches_;
  }
  // Under the lock: ends what NCCL has under way.
  void stop() noexcept {
    if (comm_) nccl_->CommAbort(std::exchange(comm_, nullptr));
  }

  NcclConfig config_;
  std::unique_ptr<CudaDriver> driver_;
  std::unique_ptr<Nccl> nccl_;
  int rank_ = 0, size_ = 1;
  CudaContext context_ = nullptr;
  CudaStream backend_stream_ = nullptr, stream_ = nullptr;

  mutable std::mutex
      mutex_;  // of NCCL's communicator and what follows; no call under it waits for other ranks
  Comm comm_ = nullptr;
  std::vector<Batch*> under_way_;   // submitted, in order, as far as they are not known to be done
  std::size_t batches_ = 0;         // that are prepared: room for so many is in under_way_
  Batch* taken_by_nccl_ = nullptr;  // the last submitted, while NCCL may still be enqueueing it
  std::uint64_t submitted_ = 0, begun_ = 0, completed_ = 0;
  std::string failure_;
};

MULLIGAN_EXPORT_COMMUNICATOR(NcclCommunicator, nccl);

}  // namespace mulligan::nccl_ranks
