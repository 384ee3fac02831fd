// Matrix products of the emulated device: on a GPU a library computes them, so what is emulated
// is their result.
#pragma once

#include "plugins/backends/cuda/device.h"

namespace mulligan::cuda {

class EmulatedDevice;

class EmulatedGemm final : public Gemm {
 public:
  EmulatedGemm(EmulatedDevice& device, const GemmShape& shape) : device_(device), shape_(shape) {}
  void run(const DeviceArgument& a, const DeviceArgument& b, const DeviceArgument& term,
           const DeviceArgument& c, void* workspace) override;

 private:
  EmulatedDevice& device_;
  GemmShape shape_;
};

}  // namespace mulligan::cuda
