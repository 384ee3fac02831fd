// A third implementation of Device (device.h), for tests: it runs the PTX that NVRTC makes of the kernels. Memory, copies, matmuls,
// attention and captures are the emulated device's.
#pragma once

#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "plugins/backends/cuda/compile/kernel_compiler.h"
#include "plugins/backends/cuda_emulated/emulated_device.h"
#include "tests/ptx/execution.h"

namespace mulligan::ptx {

class PtxDevice final : public cuda::EmulatedDevice {
 public:
  // `opcodes`: file to which each function's instructions are added; empty: they are compared with opcodes.inc.
  // Throws std::runtime_error when NVRTC is missing.
  PtxDevice(cuda::EmulatedOrder order, cuda::CompilerOptions options, const std::string& opcodes);

  cuda::DeviceFacts facts() const override;
  void expect(const cuda::FunctionRequest& request) override;
  cuda::Function& load(const cuda::FunctionRequest& request) override;
  using EmulatedDevice::launch;
  void launch(cuda::Function& function, const cuda::Grid& grid,
              std::span<const cuda::DeviceArgument> arguments) override;

 private:
  struct PtxFunction final : cuda::Function {
    std::unique_ptr<Program> program;
  };
  void run(const PtxFunction& function, const cuda::Grid& grid,
           const std::vector<cuda::DeviceArgument>& arguments);

  Order order_;
  cuda::KernelCompiler compiler_;
  std::map<cuda::FunctionSource, PtxFunction> functions_;
  std::vector<Touch> touches_;
  Clock clock_;
  std::ofstream opcodes_;
};

}  // namespace mulligan::ptx
