// CUDA C++ to machine code by NVRTC, kept on disk from run to run.
#pragma once

#include <mulligan/cuda_kernel.h>

#include <memory>
#include <string>
#include <vector>

#include "plugins/backends/cuda/compile/compile_cache.h"
#include "plugins/backends/cuda/compile/function_source.h"

namespace mulligan::cuda {

class Nvrtc;

// What ptxas says of a function.
struct FunctionResources {
  int registers = 0, shared_bytes = 0, spill_stores = 0, spill_loads = 0, stack_bytes = 0;
};

struct CompiledFunction {
  std::string cubin;
  std::string symbol;  // the function's name in it
  FunctionResources resources;
};

class KernelCompiler {
 public:
  // `architecture`: "sm_90a". `cache_directory`: empty: nothing is kept. `driver_version`: as of Nvrtc.
  // Throws std::runtime_error when NVRTC is missing.
  KernelCompiler(std::string architecture, const std::string& cache_directory, int driver_version);
  ~KernelCompiler();

  // Throws std::runtime_error with the compiler's messages, which call the source by the kernel's name.
  CompiledFunction compile(const char* kernel, const FunctionSource& source);

  int compilations() const { return compilations_; }  // those that the cache did not answer

 private:
  std::string architecture_;
  std::unique_ptr<Nvrtc> nvrtc_;
  CompileCache cache_;
  int compilations_ = 0;
};

}  // namespace mulligan::cuda
