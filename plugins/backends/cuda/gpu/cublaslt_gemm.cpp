#include "plugins/backends/cuda/gpu/cublaslt_gemm.h"

#include <mulligan/dtype.hpp>
#include <mulligan/kernel.hpp>

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>
#include <span>
#include <stdexcept>

#include "plugins/backends/cuda/gpu/cublaslt.h"
#include "plugins/backends/cuda/gpu/gpu_device.h"

namespace mulligan::cuda {
namespace {

cudaDataType_t data_type(mlg_dtype dtype) {
  return dtype == MLG_BF16 ? CUDA_R_16BF : dtype == MLG_F16 ? CUDA_R_16F : CUDA_R_32F;
}

std::int64_t element_bytes(mlg_dtype dtype) {
  return static_cast<std::int64_t>(sdk::dtype_bytes(dtype));
}

// Device memory of one measurement.
class Buffer {
 public:
  Buffer(GpuDevice& device, std::int64_t bytes)
      : device_(device),
        bytes_(static_cast<std::size_t>(bytes)),
        address_(static_cast<char*>(device.allocate(bytes_))) {}
  ~Buffer() { device_.free(address_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  void* address() const { return address_; }

  // Uniform in [-1, 1). A matmul's power, and so the GPU's clock, depend on the operands; zeros need the least power. A
  // pattern of 65,521 numbers, a prime, repeats.
  void fill_at_random(mlg_dtype dtype) const {
    std::minstd_rand random(1);
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<char> pattern;
    for (int i = 0; i < 65521; ++i) {
      const float value = uniform(random);
      sdk::dispatch_compute(dtype, [&]<typename T>() {
        const T element(value);
        const char* bytes = reinterpret_cast<const char*>(&element);
        pattern.insert(pattern.end(), bytes, bytes + sizeof element);
      });
    }
    std::size_t filled = std::min(bytes_, pattern.size());
    device_.to_device(address_, pattern.data(), filled);
    while (filled < bytes_) {
      const std::size_t more = std::min(filled, bytes_ - filled);
      device_.copy(address_ + filled, address_, more);
      filled += more;
    }
  }

 private:
  GpuDevice& device_;
  std::size_t bytes_;
  char* address_;
};

class Stopwatch {
 public:
  explicit Stopwatch(GpuDevice& device) : device_(device) {
    MLG_CU(device.driver(), EventCreate, &begin_, CU_EVENT_DEFAULT);
    MLG_CU(device.driver(), EventCreate, &end_, CU_EVENT_DEFAULT);
  }
  ~Stopwatch() {
    for (const CUevent event : {begin_, end_}) {
      if (event) device_.driver().EventDestroy(event);
    }
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  // Of what `enqueue` enqueues.
  template <typename Enqueue>
  float milliseconds(Enqueue&& enqueue) const {
    const Driver& driver = device_.driver();
    MLG_CU(driver, EventRecord, begin_, device_.stream());
    enqueue();
    MLG_CU(driver, EventRecord, end_, device_.stream());
    MLG_CU(driver, EventSynchronize, end_);
    float milliseconds = 0;
    MLG_CU(driver, EventElapsedTime, &milliseconds, begin_, end_);
    return milliseconds;
  }

 private:
  GpuDevice& device_;
  CUevent begin_ = nullptr, end_ = nullptr;
};

}  // namespace

AllowedAlgorithms allowed_algorithms(const GemmShape& shape) {
  AllowedAlgorithms allowed{~std::uint64_t{0}, CUBLASLT_REDUCTION_SCHEME_MASK};
  if (shape.input == MLG_F32) allowed.arithmetic &= ~std::uint64_t{CUBLASLT_NUMERICAL_IMPL_FLAGS_INPUT_TF32};
  if (shape.output != MLG_F32) allowed.reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  return allowed;
}

std::string algorithm_key(const std::string& library, const GemmShape& known,
                          const AllowedAlgorithms& allowed) {
  std::string key = "gemm class on random numbers " + library;
  for (const std::int64_t extent : {known.batch, known.m, known.n, known.k})
    key += " " + std::to_string(extent);
  for (const int choice : {int(known.transpose_a), int(known.transpose_b), int(known.input),
                           int(known.output), int(known.beta != 0)}) {
    key += " " + std::to_string(choice);
  }
  return key + " alignment " + std::to_string(CublasLtGemm::kAlignment) + " workspace " +
         std::to_string(CublasLt::kWorkspaceBytes) + " arithmetic " + std::to_string(allowed.arithmetic) +
         " reductions " + std::to_string(allowed.reductions);
}

CublasLtGemm::CublasLtGemm(CublasLt& library, const GemmShape& shape) : library_(library), shape_(shape) {
  const CublasLtFunctions& f = library_.functions();
  MLG_LT(f, MatmulDescCreate, &product_, CUBLAS_COMPUTE_32F, CUDA_R_32F);
  const cublasOperation_t first = shape.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t second = shape.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  MLG_LT(f, MatmulDescSetAttribute, product_, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first);
  MLG_LT(f, MatmulDescSetAttribute, product_, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second);
  // Rows and columns as they lie in memory, then seen by columns.
  describe(b_, shape.input, shape.transpose_b ? shape.n : shape.k, shape.transpose_b ? shape.k : shape.n,
           shape.stride_b());
  describe(a_, shape.input, shape.transpose_a ? shape.k : shape.m, shape.transpose_a ? shape.m : shape.k,
           shape.stride_a());
  describe(c_, shape.output, shape.m, shape.n, shape.stride_c());
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
  MLG_LT(f, MatrixLayoutCreate, &layout, data_type(dtype), static_cast<std::uint64_t>(columns),
         static_cast<std::uint64_t>(rows), columns);
  const auto batch = static_cast<std::int32_t>(shape_.batch);
  MLG_LT(f, MatrixLayoutSetAttribute, layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch);
  MLG_LT(f, MatrixLayoutSetAttribute, layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
         sizeof stride);
}

std::size_t CublasLtGemm::workspace_bytes() const {
  return CublasLt::kWorkspaceBytes;
}

void CublasLtGemm::enqueue(const void* a, const void* b, const void* term, void* c, void* workspace,
                           const cublasLtMatmulAlgo_t& algorithm) {
  const auto alpha = static_cast<float>(shape_.alpha), beta = static_cast<float>(shape_.beta);
  const CublasLtFunctions& f = library_.functions();
  MLG_LT(f, Matmul, library_.handle(), product_, &alpha, b, b_, a, a_, &beta, term, c_, c, c_, &algorithm,
         workspace, CublasLt::kWorkspaceBytes, reinterpret_cast<cudaStream_t>(library_.device().stream()));
}

void CublasLtGemm::run(const DeviceArgument& a, const DeviceArgument& b, const DeviceArgument& term,
                       const DeviceArgument& c, void* workspace) {
  for (const DeviceArgument* argument : {&a, &b, &term, &c}) {
    if (reinterpret_cast<std::uintptr_t>(argument->address) % kAlignment != 0) {
      throw std::runtime_error(std::string("matmul: argument ") + argument->name + " must be aligned to " +
                               std::to_string(kAlignment) + " bytes on a GPU");
    }
  }
  make_ready();
  enqueue(a.address, b.address, term.address, c.address, workspace, algorithm_);
}

void CublasLtGemm::try_ready(bool wait) {
  if (ready_) return;
  const std::optional<std::string> bytes = library_.algorithm(*this, wait);
  const bool elsewhere = !bytes && measurement() != 0;
  if (elsewhere) return;
  if (bytes && bytes->size() != sizeof algorithm_)
    throw std::runtime_error("the cache holds no cuBLASLt algorithm; delete it");
  if (bytes) std::memcpy(&algorithm_, bytes->data(), sizeof algorithm_);
  if (!bytes || !computed_by(algorithm_)) {
    const std::vector<cublasLtMatmulAlgo_t>& proposed = proposals();
    if (proposed.empty()) throw std::runtime_error("cuBLASLt has no algorithm for " + text());
    algorithm_ = proposed.front();
  }
  ready_ = true;
}

std::uint32_t CublasLtGemm::measurement() const {
  return library_.measurement(shape_);
}

bool CublasLtGemm::computed_by(const cublasLtMatmulAlgo_t& algorithm) const {
  const CublasLtFunctions& f = library_.functions();
  cublasLtMatmulHeuristicResult_t result{};
  const cublasStatus_t status =
      f.MatmulAlgoCheck(library_.handle(), product_, b_, a_, c_, c_, &algorithm, &result);
  return status == CUBLAS_STATUS_SUCCESS && result.workspaceSize <= CublasLt::kWorkspaceBytes;
}

std::string CublasLtGemm::text() const {
  return "the matmul [" + std::to_string(shape_.m) + ", " + std::to_string(shape_.k) + "] x [" +
         std::to_string(shape_.k) + ", " + std::to_string(shape_.n) + "]";
}

const std::vector<cublasLtMatmulAlgo_t>& CublasLtGemm::proposals() {
  GemmShape unscaled = shape_;
  unscaled.alpha = 1;
  unscaled.beta = 0;
  auto& asked = library_.proposals();
  auto known = asked.find(unscaled);
  if (known == asked.end()) known = asked.emplace(unscaled, ask_for_proposals()).first;
  return known->second;
}

std::vector<cublasLtMatmulAlgo_t> CublasLtGemm::ask_for_proposals() const {
  const CublasLtFunctions& f = library_.functions();
  cublasLtMatmulPreference_t preference = nullptr;
  MLG_LT(f, MatmulPreferenceCreate, &preference);
  const std::size_t workspace_bytes = CublasLt::kWorkspaceBytes;
  f.MatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace_bytes,
                                 sizeof workspace_bytes);
  for (const auto attribute :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    f.MatmulPreferenceSetAttribute(preference, attribute, &kAlignment, sizeof kAlignment);
  }
  const AllowedAlgorithms allowed = allowed_algorithms(shape_);
  MLG_LT(f, MatmulPreferenceSetAttribute, preference, CUBLASLT_MATMUL_PREF_IMPL_MASK, &allowed.arithmetic,
         sizeof allowed.arithmetic);
  MLG_LT(f, MatmulPreferenceSetAttribute, preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
         &allowed.reductions, sizeof allowed.reductions);
  constexpr int kProposals = 16;
  std::vector<cublasLtMatmulHeuristicResult_t> results(kProposals);
  int count = 0;
  const cublasStatus_t status = f.MatmulAlgoGetHeuristic(library_.handle(), product_, b_, a_, c_, c_,
                                                         preference, kProposals, results.data(), &count);
  f.MatmulPreferenceDestroy(preference);
  std::vector<cublasLtMatmulAlgo_t> algorithms;
  if (status != CUBLAS_STATUS_SUCCESS) return algorithms;
  for (const auto& result : std::span(results).first(static_cast<std::size_t>(count))) {
    if (result.state == CUBLAS_STATUS_SUCCESS) algorithms.push_back(result.algo);
  }
  return algorithms;
}

// Enough for about a millisecond of an H100: a single run of a small matmul is as long as the clock's error.
int CublasLtGemm::timed_runs() const {
  constexpr double kOperations = 5e11;
  constexpr int kFewest = 5, kMost = 100;
  const double each = 2.0 * static_cast<double>(shape_.batch) * static_cast<double>(shape_.m) *
                      static_cast<double>(shape_.n) * static_cast<double>(shape_.k);
  return std::clamp(static_cast<int>(kOperations / std::max(each, 1.0)), kFewest, kMost);
}

std::string CublasLtGemm::measure() {
  const std::vector<cublasLtMatmulAlgo_t>& algorithms = proposals();
  if (algorithms.empty()) throw std::runtime_error("cuBLASLt has no algorithm for " + text());
  GpuDevice& device = library_.device();
  const std::int64_t in = element_bytes(shape_.input), out = element_bytes(shape_.output);
  const Buffer a(device, shape_.batch * shape_.stride_a() * in),
      b(device, shape_.batch * shape_.stride_b() * in), c(device, shape_.batch * shape_.stride_c() * out),
      workspace(device, CublasLt::kWorkspaceBytes);
  for (const Buffer* operand : {&a, &b}) operand->fill_at_random(shape_.input);
  c.fill_at_random(shape_.output);
  const Stopwatch stopwatch(device);
  float fastest = std::numeric_limits<float>::infinity();
  const cublasLtMatmulAlgo_t* best = nullptr;
  std::string failure;
  const int runs = timed_runs();
  for (const cublasLtMatmulAlgo_t& algorithm : algorithms) {
    try {
      const auto run = [&] {
        enqueue(a.address(), b.address(), c.address(), c.address(), workspace.address(), algorithm);
      };
      run();  // loads its code
      const float milliseconds = stopwatch.milliseconds([&] {
        for (int i = 0; i < runs; ++i) run();
      });
      if (milliseconds < fastest) {
        fastest = milliseconds;
        best = &algorithm;
      }
    } catch (const std::runtime_error& error) {
      failure = error.what();
    }
  }
  if (!best) {
    throw std::runtime_error("each of the " + std::to_string(algorithms.size()) +
                             " algorithms that cuBLASLt proposes for " + text() + " fails: " + failure);
  }
  return {reinterpret_cast<const char*>(best), sizeof *best};
}

}  // namespace mulligan::cuda
