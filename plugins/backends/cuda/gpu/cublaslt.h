// Matrix products of a GPU by cuBLASLt. The algorithm for a shape is measured once and kept on disk.
#pragma once

#include <cublasLt.h>

#include <memory>
#include <string>

#include "plugins/backends/cuda/compile/compile_cache.h"
#include "plugins/backends/cuda/device.h"
#include "plugins/common/shared_library.h"

namespace mulligan::cuda {

class GpuDevice;

// The library's functions, by the names that cublasLt.h gives them without "cublasLt".
struct CublasLtFunctions {
  // The library that goes with the driver (cuda_library.h). Throws std::runtime_error when there is none.
  explicit CublasLtFunctions(int driver_version);
  void check(cublasStatus_t status, const char* call) const;

  plugins::SharedLibrary library;
  decltype(&cublasLtCreate) Create;
  decltype(&cublasLtDestroy) Destroy;
  decltype(&cublasLtGetVersion) GetVersion;
  decltype(&cublasLtGetStatusString) GetStatusString;
  decltype(&cublasLtMatmul) Matmul;
  decltype(&cublasLtMatmulDescCreate) MatmulDescCreate;
  decltype(&cublasLtMatmulDescDestroy) MatmulDescDestroy;
  decltype(&cublasLtMatmulDescSetAttribute) MatmulDescSetAttribute;
  decltype(&cublasLtMatrixLayoutCreate) MatrixLayoutCreate;
  decltype(&cublasLtMatrixLayoutDestroy) MatrixLayoutDestroy;
  decltype(&cublasLtMatrixLayoutSetAttribute) MatrixLayoutSetAttribute;
  decltype(&cublasLtMatmulPreferenceCreate) MatmulPreferenceCreate;
  decltype(&cublasLtMatmulPreferenceDestroy) MatmulPreferenceDestroy;
  decltype(&cublasLtMatmulPreferenceSetAttribute) MatmulPreferenceSetAttribute;
  decltype(&cublasLtMatmulAlgoGetHeuristic) MatmulAlgoGetHeuristic;
};

class CublasLt {
 public:
  // Throws std::runtime_error when the library is missing.
  CublasLt(GpuDevice& device, const std::string& gpu_name, const std::string& cache_directory);
  ~CublasLt();

  std::unique_ptr<Gemm> gemm(const GemmShape& shape);

  GpuDevice& device() { return device_; }
  const CublasLtFunctions& functions() const { return functions_; }
  cublasLtHandle_t handle() const { return handle_; }

  static constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;

 private:
  GpuDevice& device_;
  std::string gpu_name_;
  CompileCache cache_;
  CublasLtFunctions functions_;
  cublasLtHandle_t handle_ = nullptr;
};

}  // namespace mulligan::cuda
