#include "plugins/backends/cuda/calls/source_call.h"

#include <stdexcept>

namespace mulligan::cuda {

KernelState prepare_kernel(const mlg_kernel& kernel, const mlg_launch& call, std::size_t& workspace_bytes) {
  mlg_preparation preparation{};
  if (const mlg_error error = kernel.prepare(&call, &preparation)) throw std::runtime_error(error);
  workspace_bytes = preparation.workspace_bytes;
  return {preparation.state, kernel.release};
}

SourceCall::SourceCall(Device& device, const mlg_kernel& kernel, const mlg_call& call)
    : LaunchCall(device, kernel, call) {
  plan_anew();
}

const mlg_cuda_plan& SourceCall::plan(const mlg_kernel& kernel, const mlg_launch& call,
                                      std::size_t& workspace_bytes) {
  state_ = prepare_kernel(kernel, call, workspace_bytes);
  return *static_cast<const mlg_cuda_plan*>(state_.get());
}

}  // namespace mulligan::cuda
