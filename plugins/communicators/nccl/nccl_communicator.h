// The communicator of GPU ranks: NCCL, whose library is opened when a run needs it. Its communicator never
// blocks: what takes time is asked after until the deadline. Batches go to a stream of their own, ordered
// with the backend's by events, so that transfers and kernels overlap.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <mulligan/communicator.hpp>

#include "plugins/communicators/nccl/driver.h"
#include "plugins/communicators/nccl/library.h"

namespace mulligan::nccl_ranks {

struct NcclConfig {
  double timeout = 600;
  std::string library;
};

class NcclCommunicator final : public sdk::Communicator {
 public:
  static constexpr const char* version = "1.0";
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
  ~NcclCommunicator() override;

  void open(const sdk::Group& group, const mlg_queue& queue, double seconds) override;
  void* prepare(std::span<const sdk::Collective> list) override;
  std::uint64_t submit(void* prepared) override;
  void join(std::uint64_t ticket) override;
  std::uint64_t poll() override;
  std::uint64_t begun() override;
  void abort() noexcept override;
  void release(void* prepared) noexcept override;

 private:
  struct Batch {
    std::vector<sdk::Collective> list;  // none of no elements
    CudaEvent ready = nullptr;          // the backend's work before it is done
    CudaEvent done = nullptr;
    std::uint64_t ticket = 0;
    bool is_released = false;  // while it was under way: deleted when it is done
  };
  using Lock = std::unique_lock<std::mutex>;
  void require_sound() const;
  [[noreturn]] void fail(const std::string& sentence);
  void require(int result, const char* call);
  void settle(Lock& lock, double seconds, const char* doing);
  void enqueue(const sdk::Collective& one) const;
  void finish_submit(Lock& lock);
  void note_taken();
  bool is_reached(CudaEvent event) const;
  void retire();
  void remove(Batch* batch) noexcept;
  void stop() noexcept;

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

}  // namespace mulligan::nccl_ranks
