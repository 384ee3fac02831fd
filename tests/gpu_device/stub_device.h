// A GpuDevice on the libraries that stand in, whose counters start at zero.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "plugins/backends/cuda/gpu/gpu_device.h"
#include "tests/stub/stub.h"
#include "tests/support/sentence.h"

namespace mulligan::cuda {

// Counters at zero, and work is done when it is enqueued.
inline void reset_stubs() {
  setenv("VIRTUAL_ENV", "/nowhere", 1);  // whose wheels would come before the stubs
  stub() = {};
  stub().streams_are_threads = false;
}

class StubDevice : public testing::Test {
 protected:
  StubDevice() { reset_stubs(); }
  // Compiled code is not kept from device to device.
  static GpuDevice device() { return {0, ""}; }
};

// The algorithm that a matmul of this shape runs with.
inline int algorithm_of_run(GpuDevice& gpu, Gemm& gemm, const GemmShape& shape) {
  DeviceArgument operands[3];
  const std::int64_t extents[] = {shape.stride_a(), shape.stride_b(), shape.stride_c()};
  for (int i = 0; i < 3; ++i) {
    const auto bytes = static_cast<std::size_t>(shape.batch * extents[i]) * sizeof(float);
    operands[i].address = gpu.allocate(bytes);
    gpu.fill(operands[i].address, 1, bytes);
  }
  void* workspace = gpu.allocate(gemm.workspace_bytes());
  stub().last_algorithm = -1;
  gemm.run(operands[0], operands[1], operands[2], operands[2], workspace);
  gpu.free(workspace);
  for (const DeviceArgument& operand : operands) gpu.free(operand.address);
  return stub().last_algorithm;
}

}  // namespace mulligan::cuda
