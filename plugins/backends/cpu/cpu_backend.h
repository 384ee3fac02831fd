// The cpu backend checks and prepares calls once. Then it runs them one after another in the calling thread; each kernel
// spreads its work over the pool of worker_pool.h.
//
// Numbers: denormals are kept (no flush-to-zero), so that arithmetic is IEEE and the same in every thread;
// the kernels avoid making them where they would be slow (attention
// probabilities below exp(-87) are exactly zero).
#pragma once

#include <mulligan/backend.hpp>

#include <string>

#include "plugins/backends/common/call_arguments.h"
#include "plugins/backends/common/kernel_registry.h"

namespace mulligan::cpu {

// A checked call with room for its addresses.
class CpuCall {
 public:
  // Checks `call` against the kernel's signature,
  // then lets the kernel check shapes. Throws std::runtime_error.
  CpuCall(const mlg_kernel& kernel, const mlg_call& call);
  CpuCall(const CpuCall&) = delete;
  CpuCall& operator=(const CpuCall&) = delete;
  ~CpuCall();

  std::size_t workspace_bytes() const { return workspace_bytes_; }
  void bind(void* const* addresses, void* workspace);
  mlg_error run() const { return kernel_.run(&launch_); }
  const char* kernel_name() const { return kernel_.name; }

 private:
  mlg_kernel kernel_;
  backends::CallArguments arguments_;
  std::size_t workspace_bytes_ = 0;
  mlg_launch launch_{};  // points into arguments_
};

struct CpuConfig {
  int threads = 0;
  bool batch_invariant = false;
};

class CpuBackend final : public sdk::Backend {
 public:
  static constexpr const char* summary =
      "Runs everything on the CPU: oneDNN matmuls, own vectorised kernels.";
  static inline const sdk::Schema<CpuConfig> schema{
      sdk::key("threads", &CpuConfig::threads,
               "Threads of the kernels; 0: one per physical core that the process may use, which the ranks "
               "of a machine share.")
          .range(0, 4096),
      sdk::key("batch_invariant", &CpuConfig::batch_invariant,
               "The results of a row do not depend on how many rows are computed with it: matmuls have "
               "one fixed height, and their inner dimension is not cut. [run] determinism sets it.")};

  explicit CpuBackend(const CpuConfig& config);

  sdk::DeviceInfo info() const override;
  void* allocate(std::size_t bytes) override;
  void free(void* address) noexcept override;
  void upload(void* device, const void* host, std::size_t bytes) override;
  void download(void* host, const void* device, std::size_t bytes) override;
  void copy(void* to, const void* from, std::size_t bytes) override;
  void zero(void* device, std::size_t bytes) override;
  void add_kernels(std::span<const mlg_kernel> kernels, bool replace) override;
  const mlg_kernel* kernel_at(std::uint32_t index) const noexcept override;
  void* prepare(const sdk::Call& call, std::size_t& workspace_bytes) override;
  void bind(void* prepared, void* const* addresses, void* workspace) override;
  void run(std::span<void* const> prepared) override;
  void release(void* prepared) noexcept override;
  void synchronize() override {}  // run() returns when the work is done
  // Every kernel adds in an order that depends on neither threads nor chance; oneDNN promises the same. Rows of
  // tokens are independent in all but matmuls, which `batch_invariant` holds (math/padded_rows.h).
  mlg_determinism determinism() const noexcept override {
    return batch_invariant_ ? MLG_DETERMINISM_BATCH : MLG_DETERMINISM_RUN;
  }
  mlg_queue queue() override { return {MLG_QUEUE_HOST, nullptr, nullptr}; }

 private:
  // Makes the calling thread use this instance's number of threads and kind of matmuls
  // (kept per calling thread).
  void enter() const;

  int threads_;
  bool batch_invariant_;
  std::string description_;
  backends::KernelRegistry kernels_{"cpu"};
};

}  // namespace mulligan::cpu
