#include "plugins/backends/cuda/calls/compiled_call.h"

#include "plugins/backends/cuda/calls/source_call.h"
#include "plugins/kernels/matmul/cuda.h"

namespace mulligan::cuda {

CompiledCall::CompiledCall(Device& device, const mlg_kernel& kernel, const mlg_call& call,
                           const triton::CompiledKernel& compiled)
    : LaunchCall(device, kernel, call, &compiled), compiled_(compiled) {
  plan_anew();
  load();
}

const mlg_cuda_plan& CompiledCall::plan(const mlg_kernel& kernel, const mlg_launch& call,
                                        std::size_t& workspace_bytes) {
  if (is_product(kernel)) {
    gemm_shape(kernel, call);
  } else {
    prepare_kernel(kernel, call, workspace_bytes);
  }
  planned_ = compiled_.plan(call);
  workspace_bytes = planned_->workspace_bytes;
  return planned_->plan;
}

}  // namespace mulligan::cuda
