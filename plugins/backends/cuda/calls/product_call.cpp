#include "plugins/backends/cuda/calls/product_call.h"

#include <utility>

namespace mulligan::cuda {

ProductCall::ProductCall(Device& device, std::unique_ptr<SourceCall> own, const ProductBefore& product)
    : own_(std::move(own)), product_(product), gemm_(device.gemm(product.shape)) {
  own_->reserve(gemm_->workspace_bytes());
  own_->expect();
}

CallWork ProductCall::work() {
  CallWork work = own_->work();
  ++work.library_calls;
  work.measurement = gemm_->measurement();
  return work;
}

void ProductCall::run() {
  const CallMemory& memory = own_->memory();
  own_->choice();
  memory.mark_outputs_unwritten();
  memory.mark_workspace_unwritten();
  const DeviceArgument result = memory.tensor(product_.c);
  gemm_->run(memory.tensor(product_.a), memory.tensor(product_.b), result, result, memory.workspace());
  own_->launch();
  memory.require_written();
}

}  // namespace mulligan::cuda
