#include "plugins/backends/cuda/gpu/cublaslt.h"

#include <stdexcept>

#include "plugins/backends/cuda/compile/cuda_library.h"
#include "plugins/backends/cuda/gpu/cublaslt_gemm.h"
#include "plugins/backends/cuda/gpu/gpu_device.h"

namespace mulligan::cuda {

CublasLtFunctions::CublasLtFunctions(int driver_version)
    : library("cuBLASLt", cuda_library_names("libcublasLt", driver_version),
              cuda_library_remedy(driver_version)) {
  library.bind(Create, "cublasLtCreate");
  library.bind(Destroy, "cublasLtDestroy");
  library.bind(GetVersion, "cublasLtGetVersion");
  library.bind(GetStatusString, "cublasLtGetStatusString");
  library.bind(Matmul, "cublasLtMatmul");
  library.bind(MatmulDescCreate, "cublasLtMatmulDescCreate");
  library.bind(MatmulDescDestroy, "cublasLtMatmulDescDestroy");
  library.bind(MatmulDescSetAttribute, "cublasLtMatmulDescSetAttribute");
  library.bind(MatrixLayoutCreate, "cublasLtMatrixLayoutCreate");
  library.bind(MatrixLayoutDestroy, "cublasLtMatrixLayoutDestroy");
  library.bind(MatrixLayoutSetAttribute, "cublasLtMatrixLayoutSetAttribute");
  library.bind(MatmulPreferenceCreate, "cublasLtMatmulPreferenceCreate");
  library.bind(MatmulPreferenceDestroy, "cublasLtMatmulPreferenceDestroy");
  library.bind(MatmulPreferenceSetAttribute, "cublasLtMatmulPreferenceSetAttribute");
  library.bind(MatmulAlgoGetHeuristic, "cublasLtMatmulAlgoGetHeuristic");
  const std::size_t version = GetVersion();
  require_cuda_major("cuBLASLt " + std::to_string(version), static_cast<int>(version / 10000),
                     driver_version);
}

void CublasLtFunctions::check(cublasStatus_t status, const char* call) const {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw std::runtime_error(std::string("cublasLt") + call + " failed: " + GetStatusString(status) +
                           " (status " + std::to_string(status) + ")");
}

CublasLt::CublasLt(GpuDevice& device, const std::string& gpu_name, const std::string& cache_directory)
    : device_(device), gpu_name_(gpu_name), cache_(cache_directory), functions_(device.driver().version()) {
  functions_.check(functions_.Create(&handle_), "Create");
}

CublasLt::~CublasLt() {
  if (handle_) functions_.Destroy(handle_);
}

std::unique_ptr<Gemm> CublasLt::gemm(const GemmShape& s) {
  auto gemm = std::make_unique<CublasLtGemm>(*this, s);
  std::string key =
      "gemm on random numbers " + gpu_name_ + " cublasLt " + std::to_string(functions_.GetVersion());
  for (const std::int64_t number : {s.batch, s.m, s.n, s.k, s.stride_a(), s.stride_b(), s.stride_c()}) {
    key += " " + std::to_string(number);
  }
  for (const int number :
       {int(s.transpose_a), int(s.transpose_b), int(s.input), int(s.output), int(s.beta != 0)}) {
    key += " " + std::to_string(number);
  }
  key += " alignment " + std::to_string(CublasLtGemm::kAlignment);
  gemm->use(cache_.get(key, [&] { return gemm->measure(); }));
  return gemm;
}

}  // namespace mulligan::cuda
