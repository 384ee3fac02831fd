// A stub of libcublasLt.so.12. Its algorithms take the time, or fail, as a test sets. It judges each matmul: extents,
// strides, alignment and memory of its operands, and whether its algorithm fits it.
#include <cublasLt.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <utility>

#include "tests/gpu_device/stub/cublaslt_matmul.h"
#include "tests/stub/report.h"
#include "tests/stub/stub.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

using namespace stub_cublaslt;

struct Preference {
  std::uint32_t alignment = 256;
};

const Layout& layout_of(cublasLtMatrixLayout_t opaque) {
  return *reinterpret_cast<const Layout*>(opaque);
}
Matmul& matmul_of(cublasLtMatmulDesc_t opaque) {
  return *reinterpret_cast<Matmul*>(opaque);
}

// All that a heuristic knows of a matmul.
std::string text_of(const Matmul& matmul, const Layout& a, const Layout& b, const Layout& c,
                    const Layout& d) {
  return std::to_string(matmul.compute) + " " + std::to_string(matmul.a) + " " + std::to_string(matmul.b) +
         ";" + a.text() + b.text() + c.text() + d.text();
}

// Which algorithm was proposed or checked for which matmul.
std::set<std::pair<std::string, std::uint64_t>> admitted;
// Alignment in bytes that an algorithm was last proposed for.
std::uint32_t alignment = 256;

bool violates(const std::string& argument, const std::string& what) {
  stub_violates(("cublasLtMatmul: argument " + argument + " " + what).c_str());
  return false;
}

bool sound(const char* argument, const Layout& layout, int batch) {
  const std::string name = std::string(argument) + "desc";
  if (layout.leading < static_cast<std::int64_t>(layout.rows))
    return violates(name, "has " + std::to_string(layout.rows) + " rows and a leading dimension of " +
                              std::to_string(layout.leading));
  if (layout.batch != batch)
    return violates(name, "has a batch of " + std::to_string(layout.batch) + ", and that of A has " +
                              std::to_string(batch));
  if (argument[0] == 'D' && batch > 1 && layout.stride < static_cast<std::int64_t>(layout.elements()))
    return violates(name, "writes matrices of " + std::to_string(layout.elements()) + " elements " +
                              std::to_string(layout.stride) + " elements apart");
  return true;
}

bool touches(const char* argument, const void* address, const Layout& layout) {
  if (reinterpret_cast<std::uintptr_t>(address) % alignment != 0)
    return violates(argument, "is not aligned to " + std::to_string(alignment) + " bytes");
  return stub_touches("cublasLtMatmul", argument, address, layout.bytes());
}

bool touch(const Operands& all) {
  return touches("A", all.a, all.a_layout) && touches("B", all.b, all.b_layout) &&
         touches("C", all.c, all.c_layout) && touches("D", all.d, all.d_layout);
}

bool fits(const Matmul& matmul, const Layout& a, const Layout& b, const Layout& d) {
  const auto seen = [](const Layout& layout, cublasOperation_t operation) {
    return operation == CUBLAS_OP_N ? std::pair(layout.rows, layout.columns)
                                    : std::pair(layout.columns, layout.rows);
  };
  const auto [m, k] = seen(a, matmul.a);
  const auto [inner, n] = seen(b, matmul.b);
  const auto pair = [](std::uint64_t rows, std::uint64_t columns) {
    return "[" + std::to_string(rows) + ", " + std::to_string(columns) + "]";
  };
  if (inner != k) return violates("Bdesc", "is " + pair(inner, n) + " where A is " + pair(m, k));
  if (d.rows != m || d.columns != n)
    return violates("Ddesc", "is " + pair(d.rows, d.columns) + ", and the matmul is " + pair(m, n));
  return true;
}

bool zero(const void* data, const Layout& layout) {
  const auto* bytes = static_cast<const char*>(data);
  const auto count = static_cast<std::size_t>(layout.rows * layout.columns);
  return std::all_of(bytes, bytes + count,
                     [](char byte) { return byte == 0; });  // a byte of each element or more
}
int some;
struct Report {
  ~Report() { stubs::report("cublaslt", stub().matmuls, {}); }
} report;

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
EXPORTED cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* matmul, cublasComputeType_t compute,
                                                 cudaDataType_t) {
  stub().compute_type = compute;
  *matmul = reinterpret_cast<cublasLtMatmulDesc_t>(new Matmul{compute});
  return CUBLAS_STATUS_SUCCESS;
}
EXPORTED cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t matmul) {
  delete &matmul_of(matmul);
  return CUBLAS_STATUS_SUCCESS;
}
EXPORTED cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t matmul,
                                                       cublasLtMatmulDescAttributes_t which,
                                                       const void* value, std::size_t) {
  if (which == CUBLASLT_MATMUL_DESC_TRANSA)
    std::memcpy(&matmul_of(matmul).a, value, sizeof(cublasOperation_t));
  if (which == CUBLASLT_MATMUL_DESC_TRANSB)
    std::memcpy(&matmul_of(matmul).b, value, sizeof(cublasOperation_t));
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
  *preference = reinterpret_cast<cublasLtMatmulPreference_t>(new Preference);
  return CUBLAS_STATUS_SUCCESS;
}
EXPORTED cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete reinterpret_cast<Preference*>(preference);
  return CUBLAS_STATUS_SUCCESS;
}
EXPORTED cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                             cublasLtMatmulPreferenceAttributes_t which,
                                                             const void* value, std::size_t bytes) {
  if (which == CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES)
    std::memcpy(&reinterpret_cast<Preference*>(preference)->alignment, value, bytes);
  if (which == CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK && bytes == sizeof stub().reduction_schemes)
    std::memcpy(&stub().reduction_schemes, value, bytes);
  if (which == CUBLASLT_MATMUL_PREF_IMPL_MASK && bytes == sizeof stub().allowed)
    std::memcpy(&stub().allowed, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}
EXPORTED cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t matmul,
                                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                                       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                                       cublasLtMatmulPreference_t preference, int wanted,
                                                       cublasLtMatmulHeuristicResult_t* results, int* count) {
  ++stub().requests;
  alignment = reinterpret_cast<Preference*>(preference)->alignment;
  *count = std::min(wanted, static_cast<int>(stub().milliseconds.size()));
  for (int i = 0; i < *count; ++i) {
    results[i] = {};
    results[i].algo.data[0] = static_cast<std::uint64_t>(i);
    admitted.emplace(text_of(matmul_of(matmul), layout_of(a), layout_of(b), layout_of(c), layout_of(d)),
                     results[i].algo.data[0]);
  }
  return CUBLAS_STATUS_SUCCESS;
}
EXPORTED cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t matmul,
                                                cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                                cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                                const cublasLtMatmulAlgo_t* algorithm,
                                                cublasLtMatmulHeuristicResult_t* result) {
  *result = {};
  if (static_cast<int>(algorithm->data[0]) == stub().refused_algorithm) return CUBLAS_STATUS_NOT_SUPPORTED;
  admitted.emplace(text_of(matmul_of(matmul), layout_of(a), layout_of(b), layout_of(c), layout_of(d)),
                   algorithm->data[0]);
  return CUBLAS_STATUS_SUCCESS;
}
EXPORTED cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t matmul, const void* alpha,
                                       const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                                       cublasLtMatrixLayout_t b_layout, const void* beta, const void* c,
                                       cublasLtMatrixLayout_t c_layout, void* d,
                                       cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algorithm,
                                       void* workspace, std::size_t workspace_bytes, cudaStream_t stream) {
  const Layout &la = layout_of(a_layout), &lb = layout_of(b_layout), &lc = layout_of(c_layout);
  Layout ld = layout_of(d_layout);
  if (stubs::is_planted("cublaslt", stub().matmuls + 1)) ++ld.leading;
  const bool numbers = (alpha && beta) || violates(alpha ? "beta" : "alpha", "has no address");
  if (!numbers || !sound("A", la, la.batch) || !sound("B", lb, la.batch) || !sound("C", lc, la.batch) ||
      !sound("D", ld, la.batch) || !fits(matmul_of(matmul), la, lb, ld) ||
      !touch({matmul_of(matmul), la, lb, lc, ld, a, b, c, d}) ||
      !stub_touches("cublasLtMatmul", "workspace", workspace, workspace_bytes))
    return CUBLAS_STATUS_EXECUTION_FAILED;
  if (!admitted.contains({text_of(matmul_of(matmul), la, lb, lc, ld), algorithm->data[0]})) {
    violates("algo", "was neither proposed nor checked for this matmul");
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  stub().last_algorithm = static_cast<int>(algorithm->data[0]);
  ++stub().matmuls;
  if (const auto act = std::exchange(stub().on_matmul, {})) act();
  stub().zero_operands += static_cast<int>(zero(a, la) || zero(b, lb));
  if (stub().computes) {
    float scales[2];
    std::memcpy(&scales[0], alpha, sizeof(float));
    std::memcpy(&scales[1], beta, sizeof(float));
    const Operands operands{matmul_of(matmul), la, lb, lc, ld, a, b, c, d, scales[0], scales[1]};
    const int answer = stub_enqueues(stream, [operands] {
      if (touch(operands)) multiply(operands);
    });
    return answer == 0 ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
  }
  const bool fails = stub().milliseconds[static_cast<std::size_t>(algorithm->data[0])] < 0;
  return fails ? CUBLAS_STATUS_EXECUTION_FAILED : CUBLAS_STATUS_SUCCESS;
}
