// A matrix product (matmul, matmul_add), which the device computes by its library.
#pragma once

#include <memory>

#include "plugins/backends/cuda/calls/call_memory.h"
#include "plugins/backends/cuda/calls/device_call.h"
#include "plugins/kernels/matmul/cuda.h"

namespace mulligan::cuda {

class MatmulCall final : public DeviceCall {
 public:
  MatmulCall(Device& device, const mlg_kernel& kernel, const mlg_call& call);

  std::size_t workspace_bytes() const override { return gemm_->workspace_bytes(); }
  void bind(void* const* addresses, void* workspace) override;
  std::uint64_t choice() override;
  CallWork work() override;
  void run() override;

 private:
  CallMemory memory_;
  std::unique_ptr<Gemm> gemm_;
  ProductArguments places_;
};

}  // namespace mulligan::cuda
