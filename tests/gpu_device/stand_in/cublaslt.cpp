// A stand-in for libcublasLt.so.12, whose algorithms take the time, or fail, as they are told to.
#include <cublasLt.h>

#include <algorithm>
#include <cstring>

#include "tests/gpu_device/stand_in/stand_in.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

// A matrix by columns, and how far its pairs lie apart.
struct Layout {
  cudaDataType_t type;
  std::uint64_t rows, columns;
  std::int64_t leading;
  std::int32_t batch = 1;
  std::int64_t stride = 0;

  // From the first element to behind the last.
  std::size_t bytes() const {
    const std::size_t element = type == CUDA_R_32F ? 4 : 2;
    const std::uint64_t elements =
        static_cast<std::uint64_t>(batch - 1) * static_cast<std::uint64_t>(stride) +
        (columns - 1) * static_cast<std::uint64_t>(leading) + rows;
    return element * elements;
  }
};
const Layout& layout_of(cublasLtMatrixLayout_t opaque) {
  return *reinterpret_cast<const Layout*>(opaque);
}
bool touches(const char* argument, const void* address, cublasLtMatrixLayout_t layout) {
  return stand_in_touches("cublasLtMatmul", argument, address, layout_of(layout).bytes());
}
bool zero(const void* data, cublasLtMatrixLayout_t opaque) {
  const auto* layout = reinterpret_cast<const Layout*>(opaque);
  const auto* bytes = static_cast<const char*>(data);
  const auto count = static_cast<std::size_t>(layout->rows * layout->columns);
  return std::all_of(bytes, bytes + count,
                     [](char byte) { return byte == 0; });  // a byte of each element or more
}
int some;

}  // namespace

EXPORTED std::size_t cublasLtGetVersion() {
  return 120402;
}
EXPORTED const char* cublasLtGetStatusString(cublasStatus_t) {
  return "CUBLAS_STATUS_EXECUTION_FAILED";
}
EXPORTED cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  *handle = reinterpret_cast<cublasLtHandle_t>(&some);
  return CUBLAS_STATUS_SUCCESS;
}
EXPORTED cublasStatus_t cublasLtDestroy(cublasLtHandle_t) {
  return CUBLAS_STATUS_SUCCESS;
}
EXPORTED cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* product, cublasComputeType_t compute,
                                                 cudaDataType_t) {
  stand_in().compute_type = compute;
  *product = reinterpret_cast<cublasLtMatmulDesc_t>(&some);
  return CUBLAS_STATUS_SUCCESS;
}
EXPORTED cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t) {
  return CUBLAS_STATUS_SUCCESS;
}
EXPORTED cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t, cublasLtMatmulDescAttributes_t,
                                                       const void*, std::size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
EXPORTED cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* made, cudaDataType_t type,
                                                   std::uint64_t rows, std::uint64_t columns,
                                                   std::int64_t leading) {
  *made = reinterpret_cast<cublasLtMatrixLayout_t>(new Layout{type, rows, columns, leading});
  return CUBLAS_STATUS_SUCCESS;
}
EXPORTED cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t opaque) {
  delete reinterpret_cast<Layout*>(opaque);
  return CUBLAS_STATUS_SUCCESS;
}
EXPORTED cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t opaque,
                                                         cublasLtMatrixLayoutAttribute_t which,
                                                         const void* value, std::size_t) {
  auto* layout = reinterpret_cast<Layout*>(opaque);
  if (which == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) std::memcpy(&layout->batch, value, sizeof layout->batch);
  if (which == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET)
    std::memcpy(&layout->stride, value, sizeof layout->stride);
  return CUBLAS_STATUS_SUCCESS;
}
EXPORTED cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  *preference = reinterpret_cast<cublasLtMatmulPreference_t>(&some);
  return CUBLAS_STATUS_SUCCESS;
}
EXPORTED cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t) {
  return CUBLAS_STATUS_SUCCESS;
}
EXPORTED cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t,
                                                             cublasLtMatmulPreferenceAttributes_t which,
                                                             const void* value, std::size_t bytes) {
  if (which == CUBLASLT_MATMUL_PREF_IMPL_MASK && bytes == sizeof stand_in().allowed)
    std::memcpy(&stand_in().allowed, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}
EXPORTED cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t,
                                                       cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                                       cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                                       cublasLtMatmulPreference_t, int wanted,
                                                       cublasLtMatmulHeuristicResult_t* results, int* count) {
  *count = std::min(wanted, static_cast<int>(stand_in().milliseconds.size()));
  for (int i = 0; i < *count; ++i) {
    results[i] = {};
    results[i].algo.data[0] = static_cast<std::uint64_t>(i);
  }
  return CUBLAS_STATUS_SUCCESS;
}
EXPORTED cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t, const void*, const void* a,
                                       cublasLtMatrixLayout_t a_layout, const void* b,
                                       cublasLtMatrixLayout_t b_layout, const void*, const void* c,
                                       cublasLtMatrixLayout_t c_layout, void* d,
                                       cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algorithm,
                                       void* workspace, std::size_t workspace_bytes, cudaStream_t) {
  if (!touches("A", a, a_layout) || !touches("B", b, b_layout) || !touches("C", c, c_layout) ||
      !touches("D", d, d_layout) ||
      !stand_in_touches("cublasLtMatmul", "workspace", workspace, workspace_bytes))
    return CUBLAS_STATUS_EXECUTION_FAILED;
  stand_in().last_algorithm = static_cast<int>(algorithm->data[0]);
  stand_in().zero_operands += static_cast<int>(zero(a, a_layout) || zero(b, b_layout));
  const bool fails = stand_in().milliseconds[static_cast<std::size_t>(algorithm->data[0])] < 0;
  return fails ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
}
