#include "plugins/backends/cuda/gpu/cublaslt_gemm.h"

#include <cstring>
#include <limits>
#include <stdexcept>
#include <vector>

#include "plugins/backends/cuda/gpu/cublaslt.h"
#include "plugins/backends/cuda/gpu/gpu_device.h"

namespace mulligan::cuda {
namespace {

cudaDataType_t data_type(mlg_dtype dtype) {
  return dtype == MLG_BF16 ? CUDA_R_16BF : CUDA_R_32F;
}

std::int64_t element_bytes(mlg_dtype dtype) {
  return dtype == MLG_BF16 ? 2 : 4;
}

// Device memory of one measurement.
class Buffer {
 public:
  Buffer(GpuDevice& device, std::int64_t bytes)
      : device_(device), address_(device.allocate(static_cast<std::size_t>(bytes))) {
    device_.fill(address_, 0, static_cast<std::size_t>(bytes));
  }
  ~Buffer() { device_.free(address_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  void* address() const { return address_; }

 private:
  GpuDevice& device_;
  void* address_;
};

}  // namespace

CublasLtGemm::CublasLtGemm(CublasLt& library, const GemmShape& shape) : library_(library), shape_(shape) {
  const CublasLtFunctions& f = library_.functions();
  f.check(f.MatmulDescCreate(&product_, CUBLAS_COMPUTE_32F, CUDA_R_32F), "MatmulDescCreate");
  const cublasOperation_t first = shape.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t second = shape.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  f.check(f.MatmulDescSetAttribute(product_, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first),
          "MatmulDescSetAttribute");
  f.check(f.MatmulDescSetAttribute(product_, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second),
          "MatmulDescSetAttribute");
  // Rows and columns as they lie in memory, then seen by columns.
  describe(b_, shape.input, shape.transpose_b ? shape.n : shape.k, shape.transpose_b ? shape.k : shape.n,
           shape.stride_b);
  describe(a_, shape.input, shape.transpose_a ? shape.k : shape.m, shape.transpose_a ? shape.m : shape.k,
           shape.stride_a);
  describe(c_, shape.output, shape.m, shape.n, shape.stride_c);
}

CublasLtGemm::~CublasLtGemm() {
  const CublasLtFunctions& f = library_.functions();
  for (const cublasLtMatrixLayout_t layout : {a_, b_, c_}) {
    if (layout) f.MatrixLayoutDestroy(layout);
  }
  if (product_) f.MatmulDescDestroy(product_);
}

void CublasLtGemm::describe(cublasLtMatrixLayout_t& layout, mlg_dtype dtype, std::int64_t rows,
                            std::int64_t columns, std::int64_t stride) {
  const CublasLtFunctions& f = library_.functions();
  f.check(f.MatrixLayoutCreate(&layout, data_type(dtype), static_cast<std::uint64_t>(columns),
                               static_cast<std::uint64_t>(rows), columns),
          "MatrixLayoutCreate");
  const auto batch = static_cast<std::int32_t>(shape_.batch);
  f.check(f.MatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch),
          "MatrixLayoutSetAttribute");
  f.check(
      f.MatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride),
      "MatrixLayoutSetAttribute");
}

std::size_t CublasLtGemm::workspace_bytes() const {
  return CublasLt::kWorkspaceBytes;
}

void CublasLtGemm::enqueue(const void* a, const void* b, void* c, void* workspace,
                           const cublasLtMatmulAlgo_t& algorithm) {
  const auto alpha = static_cast<float>(shape_.alpha), beta = static_cast<float>(shape_.beta);
  const CublasLtFunctions& f = library_.functions();
  f.check(
      f.Matmul(library_.handle(), product_, &alpha, b, b_, a, a_, &beta, c, c_, c, c_, &algorithm, workspace,
               CublasLt::kWorkspaceBytes, reinterpret_cast<cudaStream_t>(library_.device().stream())),
      "Matmul");
}

void CublasLtGemm::run(const DeviceArgument& a, const DeviceArgument& b, const DeviceArgument& c,
                       void* workspace) {
  for (const DeviceArgument* argument : {&a, &b, &c}) {
    if (reinterpret_cast<std::uintptr_t>(argument->address) % kAlignment != 0) {
      throw std::runtime_error(std::string("matmul: argument ") + argument->name + " must be aligned to " +
                               std::to_string(kAlignment) + " bytes on a GPU");
    }
  }
  enqueue(a.address, b.address, c.address, workspace, algorithm_);
}

void CublasLtGemm::use(const std::string& algorithm) {
  if (algorithm.size() != sizeof algorithm_)
    throw std::runtime_error("the cache holds no cuBLASLt algorithm; delete it");
  std::memcpy(&algorithm_, algorithm.data(), sizeof algorithm_);
}

std::string CublasLtGemm::measure() {
  const CublasLtFunctions& f = library_.functions();
  cublasLtMatmulPreference_t preference = nullptr;
  f.check(f.MatmulPreferenceCreate(&preference), "MatmulPreferenceCreate");
  const std::size_t workspace_bytes = CublasLt::kWorkspaceBytes;
  f.MatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace_bytes,
                                 sizeof workspace_bytes);
  for (const auto attribute :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    f.MatmulPreferenceSetAttribute(preference, attribute, &kAlignment, sizeof kAlignment);
  }
  constexpr int kProposals = 16;
  std::vector<cublasLtMatmulHeuristicResult_t> proposals(kProposals);
  int count = 0;
  const cublasStatus_t status = f.MatmulAlgoGetHeuristic(library_.handle(), product_, b_, a_, c_, c_,
                                                         preference, kProposals, proposals.data(), &count);
  f.MatmulPreferenceDestroy(preference);
  if (status != CUBLAS_STATUS_SUCCESS || count == 0) {
    throw std::runtime_error("cuBLASLt has no algorithm for the product [" + std::to_string(shape_.m) + ", " +
                             std::to_string(shape_.k) + "] x [" + std::to_string(shape_.k) + ", " +
                             std::to_string(shape_.n) + "]");
  }
  GpuDevice& device = library_.device();
  const Driver& driver = device.driver();
  const std::int64_t in = element_bytes(shape_.input), out = element_bytes(shape_.output);
  const Buffer a(device, shape_.batch * shape_.stride_a * in), b(device, shape_.batch * shape_.stride_b * in),
      c(device, shape_.batch * shape_.stride_c * out), workspace(device, CublasLt::kWorkspaceBytes);
  CUevent begin = nullptr, end = nullptr;
  MLG_CU(driver, EventCreate, &begin, CU_EVENT_DEFAULT);
  MLG_CU(driver, EventCreate, &end, CU_EVENT_DEFAULT);
  float fastest = std::numeric_limits<float>::infinity();
  cublasLtMatmulAlgo_t best = proposals.front().algo;
  constexpr int kRuns = 5;
  for (int i = 0; i < count; ++i) {
    if (proposals[static_cast<std::size_t>(i)].state != CUBLAS_STATUS_SUCCESS) continue;
    const cublasLtMatmulAlgo_t& algorithm = proposals[static_cast<std::size_t>(i)].algo;
    enqueue(a.address(), b.address(), c.address(), workspace.address(), algorithm);  // loads its code
    MLG_CU(driver, EventRecord, begin, device.stream());
    for (int run = 0; run < kRuns; ++run) {
      enqueue(a.address(), b.address(), c.address(), workspace.address(), algorithm);
    }
    MLG_CU(driver, EventRecord, end, device.stream());
    MLG_CU(driver, EventSynchronize, end);
    float milliseconds = 0;
    MLG_CU(driver, EventElapsedTime, &milliseconds, begin, end);
    if (milliseconds < fastest) {
      fastest = milliseconds;
      best = algorithm;
    }
  }
  driver.EventDestroy(begin);
  driver.EventDestroy(end);
  return {reinterpret_cast<const char*>(&best), sizeof best};
}

}  // namespace mulligan::cuda
