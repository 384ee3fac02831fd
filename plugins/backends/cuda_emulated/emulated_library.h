// What the emulated device has in place of a library: matmuls and attention.
#pragma once

#include "plugins/backends/cuda/attention.h"
#include "plugins/backends/cuda/device.h"

namespace mulligan::cuda {

class EmulatedDevice;

// Matmuls: on a GPU a library computes them, so what is emulated is their result.
class EmulatedGemm final : public Gemm {
 public:
  EmulatedGemm(EmulatedDevice& device, const GemmShape& shape) : device_(device), shape_(shape) {}
  void run(const DeviceArgument& a, const DeviceArgument& b, const DeviceArgument& term,
           const DeviceArgument& c, void* workspace) override;

 private:
  EmulatedDevice& device_;
  GemmShape shape_;
};

// A library's attention: what is emulated is its result, and that it reads rows where their starts and
// lengths say, and nowhere else.
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
