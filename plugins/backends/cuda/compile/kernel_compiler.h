// CUDA C++ to machine code: out of a file that was compiled ahead of time, out of the cache on disk, or by
// NVRTC, several functions at once.
#pragma once

#include <atomic>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "plugins/backends/cuda/compile/background_jobs.h"
#include "plugins/backends/cuda/compile/compile_cache.h"
#include "plugins/backends/cuda/compile/cuda_library.h"
#include "plugins/backends/cuda/compile/function_source.h"
#include "plugins/backends/cuda/compile/kernel_file.h"

namespace mulligan::cuda {

class Nvrtc;

struct CompilerOptions {
  std::string architecture;     // "sm_90a"
  std::string cache_directory;  // empty: nothing is kept
  LibrarySearch libraries = {};
  int threads = 0;  // that compile; 0: one for each core
};

// One thread at a time.
class KernelCompiler {
 public:
  // `ahead`: asked before the cache; must be of this architecture and context (kernel_file_for). Throws
  // std::runtime_error when NVRTC is missing and there is no such file either.
  explicit KernelCompiler(CompilerOptions options, std::optional<KernelFile> ahead = std::nullopt);
  ~KernelCompiler();

  // A compile() of it will follow. Where it takes NVRTC, that begins on another thread.
  void begin(const char* kernel, const FunctionSource& source);
  // Throws std::runtime_error with the compiler's messages, which call the source by the kernel's name.
  CompiledFunction compile(const char* kernel, const FunctionSource& source);

  // What its functions have in common with those of a file.
  KernelFile::Origin origin();
  int compilations() const { return compilations_; }  // by NVRTC itself

 private:
  using Promise = std::shared_ptr<std::promise<CompiledFunction>>;

  Nvrtc& nvrtc();
  void make(const std::string& kernel, const FunctionSource& source, const Promise& promise, bool wait);

  CompilerOptions options_;
  std::optional<KernelFile> ahead_;
  bool told_ = false;  // that a function is not in the file
  std::once_flag opened_;
  std::unique_ptr<Nvrtc> nvrtc_;
  CompileCache cache_;
  std::atomic<int> compilations_{0};
  std::map<FunctionSource, std::future<CompiledFunction>> begun_;
  BackgroundJobs jobs_;  // the last member: its threads use the others
};

// What NVRTC gets besides a function's source: options and headers.
const std::string& compile_context();

// The file at `path`, or where that is empty the one that is shipped next to the plugins,
// ../kernels/ARCHITECTURE.kernels, if there is one; "none": no file. Nothing where it does not serve this
// architecture, these headers and a driver of this version, or is damaged: then the log says why. Throws
// std::runtime_error when there is no file at `path`.
std::optional<KernelFile> kernel_file_for(const CompilerOptions& options, const std::string& path);

}  // namespace mulligan::cuda
