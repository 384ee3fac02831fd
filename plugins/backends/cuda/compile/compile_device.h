// A device that compiles every kernel for an architecture and runs none: for checks without a GPU.
#pragma once

#include <map>

#include "plugins/backends/cuda/compile/kernel_compiler.h"
#include "plugins/backends/cuda/plan_device.h"

namespace mulligan::cuda {

class CompileDevice final : public PlanDevice {
 public:
  // `cubins`: folder for the machine code of each function and functions.tsv, a line for each: kernel,
  // function, registers, shared, spilled and stack bytes, file, symbol; empty: none is written.
  CompileDevice(const std::string& architecture, const std::string& cache_directory, std::string cubins);

  DeviceFacts facts() const override;
  // Logs one line for each function: name, architecture, registers, shared memory, spills.
  Function& load(const FunctionRequest& request) override;

 private:
  struct CompiledOnly final : Function {
    std::string symbol;
  };
  std::string compile(const char* kernel, const FunctionSource& source);

  void write(const char* kernel, const std::string& function, const CompiledFunction& compiled);

  std::string architecture_;
  KernelCompiler compiler_;
  std::string cubins_;
  int written_ = 0;
  std::map<FunctionSource, CompiledOnly> functions_;
};

}  // namespace mulligan::cuda
