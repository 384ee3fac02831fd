// A call that a compiled file computes in place of the kernel's own code, which still checks it.
#pragma once

#include "plugins/backends/cuda/calls/launch_call.h"
#include "plugins/backends/cuda/triton/compiled_kernel.h"

namespace mulligan::cuda {

class CompiledCall final : public LaunchCall {
 public:
  CompiledCall(Device& device, const mlg_kernel& kernel, const mlg_call& call,
               const triton::CompiledKernel& compiled);

 private:
  const mlg_cuda_plan& plan(const mlg_kernel& kernel, const mlg_launch& call,
                            std::size_t& workspace_bytes) override;

  const triton::CompiledKernel& compiled_;
  std::unique_ptr<triton::PlannedCall> planned_;
};

}  // namespace mulligan::cuda
