// A call that the kernel's own source computes.
#pragma once

#include <memory>

#include "plugins/backends/cuda/calls/launch_call.h"

namespace mulligan::cuda {

// The plan that the kernel's prepare() made, given back to its release().
using KernelState = std::unique_ptr<void, void (*)(void*)>;
// Throws the kernel's sentence when the call does not fit.
KernelState prepare_kernel(const mlg_kernel& kernel, const mlg_launch& call, std::size_t& workspace_bytes);

class SourceCall final : public LaunchCall {
 public:
  // Planned; expect() or load() make it ready.
  SourceCall(Device& device, const mlg_kernel& kernel, const mlg_call& call);

 private:
  const mlg_cuda_plan& plan(const mlg_kernel& kernel, const mlg_launch& call,
                            std::size_t& workspace_bytes) override;

  KernelState state_{nullptr, nullptr};
};

}  // namespace mulligan::cuda
