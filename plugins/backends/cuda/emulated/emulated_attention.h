// A library's attention on the emulated device: what is emulated is its result, and that it reads rows where
// their starts and lengths say, and nowhere else.
#pragma once

#include "plugins/backends/cuda/attention.h"

namespace mulligan::cuda {

class EmulatedDevice;

class EmulatedAttention final : public Attention {
 public:
  EmulatedAttention(EmulatedDevice& device, const AttentionShape& shape) : device_(device), shape_(shape) {}
  // Backward: the gradient of q is added up there in f32, as libraries do.
  std::size_t workspace_bytes() const override;
  void run(const AttentionArguments& arguments, void* workspace) override;

 private:
  void forward(const AttentionArguments& arguments) const;
  void backward(const AttentionArguments& arguments, float* workspace) const;

  EmulatedDevice& device_;
  AttentionShape shape_;
};

}  // namespace mulligan::cuda
