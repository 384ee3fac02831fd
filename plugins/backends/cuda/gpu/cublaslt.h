// Matmuls of a GPU by cuBLASLt. The algorithm for a shape is measured once and kept on disk.
#pragma once

#include <cublasLt.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "plugins/backends/cuda/compile/compile_cache.h"
#include "plugins/backends/cuda/compile/cuda_library.h"
#include "plugins/backends/cuda/device.h"
#include "plugins/backends/cuda/product_class.h"
#include "plugins/common/shared_library.h"

namespace mulligan::cuda {

class CublasLtGemm;
class GpuDevice;

// clang-format off
#define MLG_CUBLASLT_FUNCTIONS(X)                                                             \
  X(Create) X(Destroy) X(GetVersion) X(GetStatusString) X(Matmul) X(MatmulDescCreate)         \
  X(MatmulDescDestroy) X(MatmulDescSetAttribute) X(MatrixLayoutCreate) X(MatrixLayoutDestroy) \
  X(MatrixLayoutSetAttribute) X(MatmulPreferenceCreate) X(MatmulPreferenceDestroy)            \
  X(MatmulPreferenceSetAttribute) X(MatmulAlgoGetHeuristic) X(MatmulAlgoCheck)
// clang-format on

// The library's functions, by the names that cublasLt.h gives them without "cublasLt".
struct CublasLtFunctions {
  // The library that goes with the driver (cuda_library.h). Throws std::runtime_error when there is none.
  explicit CublasLtFunctions(const LibrarySearch& search);
  void check(cublasStatus_t status, const char* call) const;

  plugins::SharedLibrary library;
#define MLG_MEMBER(name) decltype(&cublasLt##name) name = library["cublasLt" #name];
  MLG_CUBLASLT_FUNCTIONS(MLG_MEMBER)
#undef MLG_MEMBER
};

// MLG_LT(functions, Create, &handle): cublasLtCreate, checked.
#define MLG_LT(functions, name, ...) (functions).check((functions).name(__VA_ARGS__), #name)

class CublasLt {
 public:
  // Throws std::runtime_error when the library is missing.
  CublasLt(GpuDevice& device, const std::string& gpu_name, const std::string& cache_directory,
           const LibrarySearch& search);
  ~CublasLt();

  std::unique_ptr<Gemm> gemm(const GemmShape& shape);
  // The bytes of the algorithm that is fastest for the class of `gemm`: measured once for all processes that
  // share the cache, of which each measures what no other is at, with `gemm` where it is this one. Nothing
  // where another is at it now and `wait` is not set, and for a matmul without a class.
  std::optional<std::string> algorithm(CublasLtGemm& gemm, bool wait);
  std::uint32_t measurement(const GemmShape& shape) { return classes_.number(shape); }
  std::string measured() const;                                                         // Device::measured()
  std::uint64_t measurements() const { return static_cast<std::uint64_t>(measured_); }  // by this process

  GpuDevice& device() { return device_; }
  const CublasLtFunctions& functions() const { return functions_; }
  cublasLtHandle_t handle() const { return handle_; }

  // By shape, as CublasLtGemm fills it: heuristics take some 50 us, and a few thousand shapes serve all matmuls.
  std::map<GemmShape, std::vector<cublasLtMatmulAlgo_t>>& proposals() { return proposals_; }

  static constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;

 private:
  GpuDevice& device_;
  std::string gpu_name_;
  CompileCache cache_;
  CublasLtFunctions functions_;
  cublasLtHandle_t handle_ = nullptr;
  ProductClasses classes_;
  std::map<std::uint32_t, std::string> algorithms_;  // by number of the class
  std::map<GemmShape, std::vector<cublasLtMatmulAlgo_t>> proposals_;
  int measured_ = 0, read_ = 0, unmeasured_ = 0;  // classes, classes of others, matmuls
  double seconds_ = 0;                            // that measuring took
};

}  // namespace mulligan::cuda
