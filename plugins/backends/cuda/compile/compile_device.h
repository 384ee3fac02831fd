// A device that compiles every kernel for an architecture and runs none: for checks without a GPU.
#pragma once

#include <map>

#include "plugins/backends/cuda/compile/kernel_compiler.h"
#include "plugins/backends/cuda/plan_device.h"

namespace mulligan::cuda {

class CompileDevice final : public PlanDevice {
 public:
  CompileDevice(const std::string& architecture, const std::string& cache_directory)
      : architecture_(architecture), compiler_(architecture, cache_directory, 0) {}

  DeviceFacts facts() const override;
  // Logs one line for each function: name, architecture, registers, shared memory, spills.
  Function& load(const FunctionRequest& request) override;

 private:
  struct CompiledOnly final : Function {
    std::string symbol;
  };
  std::string compile(const char* kernel, const FunctionSource& source);

  std::string architecture_;
  KernelCompiler compiler_;
  std::map<FunctionSource, CompiledOnly> functions_;
};

}  // namespace mulligan::cuda
