#include "plugins/backends/cuda/cuda_backend.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "kernels/leaky_relu_squared/signature_linear.h"
#include "kernels/matmul/cuda.h"
#include "plugins/backends/common/core_kernels.h"
#include "plugins/backends/cuda/calls/device_call.h"
#include "plugins/backends/cuda/invariant_kernels.h"

namespace mulligan::cuda {
namespace {

// `kernels` as a batch-invariant backend has them: without those whose matmul is the library's
// (linear_leaky_relu_squared, fused; a graph does without), and with those of invariant_kernels.h.
std::vector<mlg_kernel> invariant_kernels(std::span<const mlg_kernel> kernels) {
  const std::span<const mlg_kernel> products = fixed_matmul_kernels();
  std::vector<mlg_kernel> invariant(products.begin(), products.end());
  const std::span<const mlg_kernel> attention = invariant_attention_forward();
  invariant.insert(invariant.end(), attention.begin(), attention.end());
  const auto left_out = [&](std::string_view name) {
    return name == shapes::LinearLeakyReluSquaredForward::name ||
           name == shapes::LinearLeakyReluSquaredBackward::name ||
           std::ranges::any_of(invariant, [name](const mlg_kernel& own) { return name == own.name; });
  };
  std::ranges::copy_if(kernels, std::back_inserter(invariant),
                       [&](const mlg_kernel& kernel) { return !left_out(kernel.name); });
  return invariant;
}

}  // namespace

CudaBackend::CudaBackend(const CudaConfig& config)
    : device_(make_device(config)),
      facts_(device_->facts()),
      batch_invariant_(config.batch_invariant),
      attention_(*device_, {.library = config.attention == "library" && !batch_invariant_,
                            .required = config.require_library,
                            .deterministic = config.deterministic}),
      graphs_(*device_, config.graphs) {
  if (config.require_library && attention_.deterministic()) {
    throw sdk::Error(
        "attention = \"own\", deterministic and batch_invariant do without the library; set run.require_libraries = "
        "false for them");
  }
  if (batch_invariant_) {
    kernels_.add(invariant_kernels(backends::core_kernels()), false);
  } else {
    kernels_.add(matmul_kernels(), false);
    kernels_.add(backends::core_kernels(), false);
  }
}

sdk::DeviceInfo CudaBackend::info() const {
  return {facts_.description.c_str(), facts_.memory_bytes, facts_.threads, facts_.computes};
}

void* CudaBackend::allocate(std::size_t bytes) {
  void* address = device_->allocate(bytes);
  device_->fill(address, 0, bytes);
  return address;
}
void CudaBackend::free(void* address) noexcept {
  device_->free(address);
}
void CudaBackend::upload(void* device, const void* host, std::size_t bytes) {
  if (bytes == 0) return;
  device_->to_device(device, host, bytes);
  attention_.written(device, host, bytes);
}
void CudaBackend::download(void* host, const void* device, std::size_t bytes) {
  if (bytes > 0) device_->from_device(host, device, bytes);
}
void CudaBackend::copy(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  device_->copy(to, from, bytes);
  attention_.written(to, nullptr, bytes);
}
void CudaBackend::zero(void* device, std::size_t bytes) {
  if (bytes == 0) return;
  device_->fill(device, 0, bytes);
  attention_.written(device, nullptr, bytes);
}

void CudaBackend::add_kernels(std::span<const mlg_kernel> kernels, bool replace) {
  for (const mlg_kernel& kernel : kernels) {
    if (std::strcmp(kernel.backend, "cuda") == 0 && (!kernel.prepare || !kernel.release || !kernel.source)) {
      throw std::runtime_error(std::string("kernel ") + kernel.name +
                               " has no source or no prepare and release functions for the cuda backend");
    }
  }
  kernels_.add(kernels, replace);
}

void CudaBackend::replace_kernel(const char* name, const char* path) {
  const mlg_kernel& known = kernels_.named(name);
  compiled_.insert_or_assign(known.name,
                             triton::CompiledKernel(path, known.name, known.signature, facts_.architecture));
}

const mlg_kernel* CudaBackend::kernel_at(std::uint32_t index) const noexcept {
  return kernels_.at(index);
}

void* CudaBackend::prepare(const sdk::Call& call, std::size_t& workspace_bytes) {
  const auto compiled = compiled_.find(std::string_view(call.kernel));
  std::unique_ptr<DeviceCall> prepared =
      make_device_call(*device_, attention_, kernels_.named(call.kernel), call,
                       compiled == compiled_.end() ? nullptr : &compiled->second);
  workspace_bytes = prepared->workspace_bytes();
  return prepared.release();
}

void CudaBackend::bind(void* prepared, void* const* addresses, void* workspace) {
  graphs_.forget();
  static_cast<DeviceCall*>(prepared)->bind(addresses, workspace);
}

void CudaBackend::run(std::span<void* const> prepared) {
  graphs_.run(prepared);
}

mlg_work CudaBackend::work(void* prepared) {
  return static_cast<DeviceCall*>(prepared)->work();
}

sdk::Made CudaBackend::made(std::uint32_t index) const noexcept {
  const DeviceMade device = device_->made();
  const sdk::Made all[] = {{"kernel_modules", device.modules},
                           {"kernels_compiled", device.compiled},
                           {"attention_plans", attention_.plans()},
                           {"products_measured", device.measurements},
                           {"graphs_captured", graphs_.captures()}};
  return index < std::size(all) ? all[index] : sdk::Made{};
}

// Code and graphs that still run must not be unloaded. On a lost device nothing runs, and its error was thrown.
void CudaBackend::release(void* prepared) noexcept {
  try {
    if (!device_->lost()) {
      graphs_.forget();
      device_->synchronize();
    }
  } catch (const std::exception& error) {
    if (!release_failed_)
      sdk::log(sdk::LogLevel::warning, std::string("while a kernel call was released: ") + error.what());
    release_failed_ = true;
  }
  delete static_cast<DeviceCall*>(prepared);
}

void CudaBackend::synchronize() {
  attention_.finish_expected();
  device_->synchronize();
  if (const std::string measured = device_->measured(); measured != measured_) {
    sdk::log(sdk::LogLevel::info, measured);
    measured_ = measured;
  }
}

MULLIGAN_EXPORT_BACKEND(CudaBackend, cuda);

}  // namespace mulligan::cuda
