// The communicator of CPU ranks: gloo's transport carries the messages, a thread of the communicator's own
// does one submitted batch after the other.
#include <condition_variable>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <utility>

#include "plugins/communicators/gloo/exchange_plan.h"
#include "plugins/communicators/gloo/mesh.h"

namespace mulligan::gloo_ranks {

namespace {

constexpr std::align_val_t kBufferAlignment{64};

std::shared_ptr<char[]> allocate(std::size_t bytes) {
  auto* memory = static_cast<char*>(::operator new(bytes, kBufferAlignment));
  return {memory, [](char* address) { ::operator delete(address, kBufferAlignment); }};
}

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000) + 1);
}

}  // namespace

struct GlooConfig {
  double timeout = 1800;
};

class GlooCommunicator final : public sdk::Communicator {
 public:
  static constexpr const char* summary =
      "collectives of CPU ranks over TCP (gloo), reductions in rank order: the same bits on all ranks";
  static inline const sdk::Schema<GlooConfig> schema{
      sdk::key("timeout", &GlooConfig::timeout,
               "Seconds for which another rank may keep a transfer waiting; then the run fails. "
               "Ranks whose processes died or were stopped are noticed earlier by the run itself.")
          .range(0.01, 1e6)};

  explicit GlooCommunicator(const GlooConfig& config) : config_(config) {}
  ~GlooCommunicator() override {
    bool idle = false;
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
      idle = submitted_ == completed_;
    }
    submitted_signal_.notify_all();
    if (!idle) abort();
    if (thread_.joinable()) thread_.join();
  }

  void open(const sdk::Group& group, const mlg_queue& queue, double seconds) override {
    if (queue.kind != MLG_QUEUE_HOST) {
      throw sdk::Error(
          "'gloo' moves memory of the host, and the backend's is a device's; set communicator.plugin to "
          "\"nccl\", or leave it out");
    }
    rank_ = group.rank;
    size_ = group.size;
    if (size_ > 1) {
      auto mesh = std::make_unique<Mesh>(group, milliseconds(seconds));
      {
        const std::lock_guard lock(mutex_);
        require_sound();
        mesh_ = std::move(mesh);  // from here on abort() ends what follows
      }
      mesh_->connect(group, "gloo", seconds);
      mesh_->set_timeout(milliseconds(config_.timeout));
    }
    thread_ = std::thread([this] { work(); });
  }
  void* prepare(std::span<const sdk::Collective> list) override {
    auto batch = std::make_unique<Batch>();
    batch->plan = make_plan(list, rank_, size_);
    // Batches that were prepared earlier keep the smaller buffer that they have.
    if (batch->plan.workspace_bytes > workspace_bytes_) {
      workspace_ = allocate(batch->plan.workspace_bytes);
      workspace_bytes_ = batch->plan.workspace_bytes;
    }
    batch->workspace = workspace_;
    if (batch->workspace) batch->plan.place(batch->workspace.get());
    return batch.release();
  }
  std::uint64_t submit(void* prepared) override {
    auto* batch = static_cast<Batch*>(prepared);
    const std::lock_guard lock(mutex_);
    require_sound();
    if (batch->is_pending) throw sdk::Error("a batch of transfers was submitted again before it was joined");
    batch->is_pending = true;
    batch->next = nullptr;
    (last_ ? last_->next : first_) = batch;
    last_ = batch;
    submitted_signal_.notify_one();
    return ++submitted_;
  }
  void join(std::uint64_t ticket) override {
    std::unique_lock lock(mutex_);
    done_signal_.wait(lock, [&] { return completed_ >= ticket || !failure_.empty(); });
    require_sound();
  }
  sdk::Tickets poll() override {
    const std::lock_guard lock(mutex_);
    require_sound();
    return {completed_};
  }
  void abort() noexcept override {
    Mesh* mesh = nullptr;
    {
      const std::lock_guard lock(mutex_);
      if (failure_.empty()) failure_ = "the communicator was aborted";
      mesh = mesh_.get();
    }
    done_signal_.notify_all();
    submitted_signal_.notify_all();
    if (mesh) mesh->abort();
  }
  void release(void* prepared) noexcept override {
    auto* batch = static_cast<Batch*>(prepared);
    {
      std::unique_lock lock(mutex_);
      // Only after a failure can it be under way, and then its waits are ending.
      done_signal_.wait(lock, [&] { return !batch->is_pending; });
    }
    delete batch;
  }

 private:
  // The buffers of batches, which run one after another and so share them.
  using Workspace = std::shared_ptr<char[]>;
  struct Batch {
    Plan plan;
    Workspace workspace;
    Batch* next = nullptr;    // in the list of those to do
    bool is_pending = false;  // submitted and not finished
  };

  // The thread.
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      submitted_signal_.wait(lock, [&] { return first_ || ends_; });
      if (!first_) return;
      Batch* batch = std::exchange(first_, first_->next);
      if (!first_) last_ = nullptr;
      const bool sound = failure_.empty();
      lock.unlock();
      std::string failure;
      if (sound) {
        try {
          exchange(batch->plan, mesh_.get(), rank_, size_);
        } catch (const std::exception& error) {
          failure = error.what();
          mesh_->close();
        }
      }
      lock.lock();
      batch->is_pending = false;
      if (sound && failure.empty()) ++completed_;
      if (failure_.empty()) failure_ = failure;
      done_signal_.notify_all();
    }
  }
  // Under the lock.
  void require_sound() const {
    if (!failure_.empty()) throw sdk::Error(failure_);
  }

  GlooConfig config_;
  int rank_ = 0, size_ = 1;
  Workspace workspace_;
  std::size_t workspace_bytes_ = 0;

  mutable std::mutex mutex_;  // of all that follows
  std::condition_variable submitted_signal_, done_signal_;
  std::unique_ptr<Mesh> mesh_;  // set once; null in a world of one
  Batch *first_ = nullptr, *last_ = nullptr;
  std::uint64_t submitted_ = 0, completed_ = 0;
  std::string failure_;
  bool ends_ = false;
  std::thread thread_;
};

MULLIGAN_EXPORT_COMMUNICATOR(GlooCommunicator, gloo);

}  // namespace mulligan::gloo_ranks
