#include "plugins/backends/cpu/cpu_backend.h"

#include <cstring>
#include <memory>
#include <stdexcept>

#include "plugins/backends/common/core_kernels.h"
#include "plugins/backends/cpu/cpu_machine.h"
#include "plugins/backends/cpu/math/matmul_mode.h"
#include "plugins/backends/cpu/thread_count.h"
#include "plugins/backends/cpu/worker_pool.h"

namespace mulligan::cpu {

CpuCall::CpuCall(const mlg_kernel& kernel, const mlg_call& call)
    : kernel_(kernel), arguments_(kernel, call), launch_(arguments_.launch()) {
  launch_.parallel_for = parallel_for;
  if (kernel_.prepare != nullptr) {
    mlg_preparation preparation{};
    if (const mlg_error error = kernel_.prepare(&launch_, &preparation)) throw std::runtime_error(error);
    launch_.state = preparation.state;
    workspace_bytes_ = preparation.workspace_bytes;
  }
}

CpuCall::~CpuCall() {
  if (kernel_.release != nullptr && launch_.state != nullptr) kernel_.release(launch_.state);
}

void CpuCall::bind(void* const* addresses, void* workspace) {
  arguments_.bind(addresses, workspace, workspace_bytes_);
  launch_.workspace = workspace;
}

CpuBackend::CpuBackend(const CpuConfig& config)
    : threads_(config.threads > 0 ? config.threads : thread_count(thread_facts())),
      batch_invariant_(config.batch_invariant),
      description_(cpu_name() + ", " + std::to_string(threads_) + (threads_ == 1 ? " thread" : " threads")) {
  CpuBackend::add_kernels(backends::core_kernels(), false);
}

void CpuBackend::enter() const {
  set_thread_count(threads_);
  set_batch_invariant_matmuls(batch_invariant_);
}

sdk::DeviceInfo CpuBackend::info() const {
  return {description_.c_str(), memory_bytes(), threads_, 1};
}

void* CpuBackend::allocate(std::size_t bytes) {
  enter();
  return allocate_zeroed(bytes);
}

void CpuBackend::free(void* address) noexcept {
  free_memory(address);
}

void CpuBackend::upload(void* device, const void* host, std::size_t bytes) {
  copy(device, host, bytes);
}
void CpuBackend::download(void* host, const void* device, std::size_t bytes) {
  copy(host, device, bytes);
}

void CpuBackend::copy(void* to, const void* from, std::size_t bytes) {
  enter();
  copy_memory(to, from, bytes);
}

void CpuBackend::zero(void* device, std::size_t bytes) {
  enter();
  zero_memory(device, bytes);
}

void CpuBackend::add_kernels(std::span<const mlg_kernel> kernels, bool replace) {
  for (const mlg_kernel& kernel : kernels) {
    if (std::strcmp(kernel.backend, "cpu") == 0 && kernel.run == nullptr) {
      throw std::runtime_error(std::string("kernel ") + kernel.name +
                               " has no run function for the cpu backend");
    }
  }
  kernels_.add(kernels, replace);
}

const mlg_kernel* CpuBackend::kernel_at(std::uint32_t index) const noexcept {
  return kernels_.at(index);
}

void* CpuBackend::prepare(const sdk::Call& call, std::size_t& workspace_bytes) {
  enter();  // oneDNN splits a primitive's work among the threads when it creates the primitive
  auto prepared = std::make_unique<CpuCall>(kernels_.named(call.kernel), call);
  workspace_bytes = prepared->workspace_bytes();
  return prepared.release();
}

void CpuBackend::bind(void* prepared, void* const* addresses, void* workspace) {
  static_cast<CpuCall*>(prepared)->bind(addresses, workspace);
}

void CpuBackend::run(std::span<void* const> prepared) {
  enter();
  mlg_running& running = *sdk::host_services->running;
  for (std::uint32_t index = 0; index < prepared.size(); ++index) {
    const auto* call = static_cast<const CpuCall*>(prepared[index]);
    running.call = index;
    running.kernel = call->kernel_name();
    sdk::check(call->run());
  }
  running.kernel = nullptr;
}

void CpuBackend::release(void* prepared) noexcept {
  delete static_cast<CpuCall*>(prepared);
}

MULLIGAN_EXPORT_BACKEND(CpuBackend, cpu);

}  // namespace mulligan::cpu
