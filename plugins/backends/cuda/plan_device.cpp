#include "plugins/backends/cuda/plan_device.h"

#include <cstring>

namespace mulligan::cuda {
namespace {

struct NoGemm final : Gemm {
  explicit NoGemm(std::uint32_t measurement) : measured_as(measurement) {}
  std::uint32_t measurement() const override { return measured_as; }
  void run(const DeviceArgument&, const DeviceArgument&, const DeviceArgument&, const DeviceArgument&,
           void*) override {}
  std::uint32_t measured_as;
};

struct NoAttention final : Attention {
  std::size_t workspace_bytes() const override { return 0; }
  void run(const AttentionArguments&, void*) override {}
};

}  // namespace

DeviceFacts PlanDevice::facts() const {
  return {"CUDA calls, planned (computes nothing)", 0, 0, false, {}};
}

void* PlanDevice::allocate(std::size_t bytes) {
  const std::uintptr_t address = next_;
  next_ += (bytes + 255) / 256 * 256 + 256;
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): never dereferenced
}

void PlanDevice::from_device(void* host, const void*, std::size_t bytes) {
  std::memset(host, 0, bytes);
}

Function& PlanDevice::load(const FunctionRequest&) {
  return function_;
}

std::unique_ptr<Gemm> PlanDevice::gemm(const GemmShape& shape) {
  return std::make_unique<NoGemm>(classes_.number(shape));
}

// Not known without the library.
std::optional<std::size_t> PlanDevice::attention_workspace_bytes(const AttentionShape&, std::string&) {
  return 0;
}

std::unique_ptr<Attention> PlanDevice::attention(const AttentionShape&, std::string&) {
  return std::make_unique<NoAttention>();
}

}  // namespace mulligan::cuda
