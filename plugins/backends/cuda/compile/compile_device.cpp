#include "plugins/backends/cuda/compile/compile_device.h"

#include <mulligan/plugin.hpp>

#include <cstring>

#include "plugins/backends/cuda/triton/compiled_kernel.h"

namespace mulligan::cuda {
namespace {

struct NoGemm final : Gemm {
  void run(const DeviceArgument&, const DeviceArgument&, const DeviceArgument&, void*) override {}
};

struct NoAttention final : Attention {
  std::size_t workspace_bytes() const override { return 0; }
  void run(const AttentionArguments&, void*) override {}
};

}  // namespace

DeviceFacts CompileDevice::facts() const {
  return {"CUDA compiler for " + architecture_ + " (computes nothing)", 0, 0, false, architecture_};
}

void* CompileDevice::allocate(std::size_t bytes) {
  const std::uintptr_t address = next_;
  next_ += (bytes + 255) / 256 * 256 + 256;
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): never dereferenced
}

void CompileDevice::from_device(void* host, const void*, std::size_t bytes) {
  std::memset(host, 0, bytes);
}

std::unique_ptr<Function> CompileDevice::load(const FunctionRequest& request) {
  if (request.compiled) {
    sdk::log(sdk::LogLevel::info, std::string("kernel ") + request.kernel + " is taken from " +
                                      request.compiled->file() + ", entry point " + request.launch->function);
    return std::make_unique<Function>();
  }
  const FunctionResources r = compiler_.compile(request.kernel, request.source, *request.launch).resources;
  sdk::log(sdk::LogLevel::info, std::string("compiled ") + request.kernel + ": " + request.launch->function +
                                    " for " + architecture_ + ", registers " + std::to_string(r.registers) +
                                    ", shared bytes " + std::to_string(r.shared_bytes) + ", spilled bytes " +
                                    std::to_string(r.spill_stores + r.spill_loads) + ", stack bytes " +
                                    std::to_string(r.stack_bytes));
  return std::make_unique<Function>();
}

std::unique_ptr<Gemm> CompileDevice::gemm(const GemmShape&) {
  return std::make_unique<NoGemm>();
}

std::unique_ptr<Attention> CompileDevice::attention(const AttentionShape&, std::string&) {
  return std::make_unique<NoAttention>();
}

}  // namespace mulligan::cuda
