// A product of the device's library and launches of the kernel's own code on its result.
#pragma once

#include <memory>

#include "plugins/backends/cuda/calls/source_call.h"
#include "plugins/kernels/leaky_relu_squared/cuda_linear.h"

namespace mulligan::cuda {

class ProductCall final : public DeviceCall {
 public:
  // `product` is of the arguments of `own`.
  ProductCall(Device& device, std::unique_ptr<SourceCall> own, const ProductBefore& product);

  std::size_t workspace_bytes() const override { return own_->workspace_bytes(); }
  void bind(void* const* addresses, void* workspace) override { own_->bind(addresses, workspace); }
  std::uint64_t choice() override {
    gemm_->make_ready();
    return own_->choice();
  }
  CallWork work() override;
  void run() override;

 private:
  std::unique_ptr<SourceCall> own_;
  ProductBefore product_;
  std::unique_ptr<Gemm> gemm_;
};

}  // namespace mulligan::cuda
