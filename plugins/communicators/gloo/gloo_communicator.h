// The communicator of CPU ranks: gloo's transport carries the messages, a thread of the communicator's own
// does one submitted batch after the other.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "plugins/communicators/gloo/exchange_plan.h"
#include "plugins/communicators/gloo/mesh.h"

namespace mulligan::gloo_ranks {

struct GlooConfig {
  double timeout = 1800;
};

class GlooCommunicator final : public sdk::Communicator {
 public:
  static constexpr const char* version = "1.0";
  static constexpr const char* summary =
      "collectives of CPU ranks over TCP (gloo), reductions in rank order: the same bits on all ranks";
  static inline const sdk::Schema<GlooConfig> schema{
      sdk::key("timeout", &GlooConfig::timeout,
               "Seconds for which another rank may keep a transfer waiting; then the run fails. "
               "Ranks whose processes died or were stopped are noticed earlier by the run itself.")
          .range(0.01, 1e6)};

  explicit GlooCommunicator(const GlooConfig& config) : config_(config) {}
  ~GlooCommunicator() override;

  void open(const sdk::Group& group, const mlg_queue& queue, double seconds) override;
  void* prepare(std::span<const sdk::Collective> list) override;
  std::uint64_t submit(void* prepared) override;
  void join(std::uint64_t ticket) override;
  std::uint64_t poll() override;
  void abort() noexcept override;
  void release(void* prepared) noexcept override;

 private:
  // The buffers of batches, which run one after another and so share them.
  using Workspace = std::shared_ptr<char[]>;
  struct Batch {
    Plan plan;
    Workspace workspace;
    Batch* next = nullptr;    // in the list of those to do
    bool is_pending = false;  // submitted and not finished
  };

  void work();                 // the thread
  void require_sound() const;  // under the lock

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

}  // namespace mulligan::gloo_ranks
