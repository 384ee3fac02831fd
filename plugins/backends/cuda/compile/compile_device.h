// A device that compiles every kernel for an architecture and runs none: for checks without a GPU. Like the
// null backend it holds no memory; addresses are never dereferenced.
#pragma once

#include <map>

#include "plugins/backends/cuda/compile/kernel_compiler.h"
#include "plugins/backends/cuda/device.h"

namespace mulligan::cuda {

class CompileDevice final : public Device {
 public:
  CompileDevice(const std::string& architecture, const std::string& cache_directory)
      : architecture_(architecture), compiler_(architecture, cache_directory, 0) {}

  DeviceFacts facts() const override;
  void* allocate(std::size_t bytes) override;
  void free(void*) noexcept override {}
  void to_device(void*, const void*, std::size_t) override {}
  void from_device(void* host, const void*, std::size_t bytes) override;
  void copy(void*, const void*, std::size_t) override {}
  void fill(void*, int, std::size_t) override {}
  // Logs one line for each function: name, architecture, registers, shared memory, spills.
  Function& load(const FunctionRequest& request) override;
  void launch(Function&, const Grid&, std::span<const DeviceArgument>) override {}
  std::unique_ptr<Gemm> gemm(const GemmShape& shape) override;
  std::optional<std::size_t> attention_workspace_bytes(const AttentionShape& shape,
                                                       std::string& reason) override;
  std::unique_ptr<Attention> attention(const AttentionShape& shape, std::string& reason) override;
  void begin_capture() override {}
  std::unique_ptr<CapturedGraph> end_capture() override { return std::make_unique<CapturedGraph>(); }
  void abandon_capture() noexcept override {}
  void launch(CapturedGraph&) override {}
  void synchronize() override {}

 private:
  struct CompiledOnly final : Function {
    std::string symbol;
  };
  std::string compile(const char* kernel, const FunctionSource& source);

  std::string architecture_;
  KernelCompiler compiler_;
  std::map<FunctionSource, CompiledOnly> functions_;
  std::uintptr_t next_ = std::uintptr_t{1} << 32;
};

}  // namespace mulligan::cuda
