// A device that compiles every kernel for an architecture and runs none: for checks without a GPU, and to
// make the file of functions that a bundle ships.
#pragma once

#include <map>
#include <string>

#include "plugins/backends/cuda/compile/kernel_compiler.h"
#include "plugins/backends/cuda/plan_device.h"

namespace mulligan::cuda {

class CompileDevice final : public PlanDevice {
 public:
  // `kernel_file`: where synchronize() leaves what was compiled, together with what the file holds already,
  // if that goes with it; empty: nowhere. `cubins`: folder for the machine code of each function and
  // functions.tsv, a line for each: kernel, function, registers, shared, spilled and stack bytes, file,
  // symbol; empty: none is written. Throws std::runtime_error when NVRTC is missing.
  CompileDevice(CompilerOptions options, std::string kernel_file, std::string cubins);

  DeviceFacts facts() const override;
  void expect(const FunctionRequest& request) override;
  // Logs one line for each function: name, architecture, registers, shared memory, spills.
  Function& load(const FunctionRequest& request) override;
  // Finishes all functions that were expected. Throws the first one's refusal.
  void synchronize() override;

 private:
  struct CompiledOnly final : Function {
    std::string kernel;  // the first that asked for it
    CompiledFunction code;
    bool compiled = false;
  };
  CompiledOnly& compiled(const char* kernel, const FunctionSource& source);
  void write(const std::string& kernel, const std::string& function, const CompiledFunction& compiled);

  std::string architecture_, kernel_file_;
  bool unsaved_ = false;
  KernelCompiler compiler_;
  std::string cubins_;
  int written_ = 0;
  std::map<FunctionSource, CompiledOnly> functions_;
};

}  // namespace mulligan::cuda
