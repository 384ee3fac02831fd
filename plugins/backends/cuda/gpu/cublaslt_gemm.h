// One matmul by cuBLASLt.
//
// cuBLASLt counts in columns: our row-major c [m, n] = a b is its column-major c^T = b^T a^T, so it is handed
// b first, and a row-major matrix without "transpose" is what it calls its own order.
#pragma once

#include <cublasLt.h>

#include <string>
#include <vector>

#include "plugins/backends/cuda/device.h"

namespace mulligan::cuda {

class CublasLt;

// What algorithms of a matmul may do, as cuBLASLt's masks: by arithmetic, and by how they add up parts of k.
struct AllowedAlgorithms {
  // CUBLAS_COMPUTE_32F alone asks for f32 arithmetic; this says of each algorithm that it does it: none that
  // rounds f32 operands to TF32 is proposed. Not asked on trust, for whoever compares
  // precisions relies on it.
  std::uint64_t arithmetic = 0;
  // Nor one that rounds partial sums to a narrow output before it adds them up.
  std::uint32_t reductions = 0;
};
AllowedAlgorithms allowed_algorithms(const GemmShape& shape);

// What an algorithm that was timed depends on besides the matmul's `known` class: `library` and GPU, and all
// that the library was told about which algorithms to propose.
std::string algorithm_key(const std::string& library, const GemmShape& known,
                          const AllowedAlgorithms& allowed);

class CublasLtGemm final : public Gemm {
 public:
  // What algorithms may demand of addresses. cuBLASLt's default, 256 bytes, is more than a view of
  // a tensor has.
  static constexpr std::uint32_t kAlignment = 16;

  // Throws std::runtime_error when cuBLASLt has no algorithm for the shape.
  CublasLtGemm(CublasLt& library, const GemmShape& shape);
  ~CublasLtGemm() override;

  const GemmShape& shape() const { return shape_; }
  // Times the algorithms that cuBLASLt proposes, on random numbers of the matmul's size, and returns the
  // bytes of the fastest; one that fails is left out. Throws std::runtime_error when all fail.
  std::string measure();
  // Takes its class's algorithm, where that computes this matmul as well, or else the first that cuBLASLt
  // proposes. Leaves it for later where another process is measuring it now, unless it may `wait`.
  void try_ready(bool wait);

  std::uint32_t measurement() const override;
  void make_ready() override { try_ready(true); }
  std::size_t workspace_bytes() const override;
  void run(const DeviceArgument& a, const DeviceArgument& b, const DeviceArgument& term,
           const DeviceArgument& c, void* workspace) override;

 private:
  // Of this shape, at any scales: the library is asked once.
  const std::vector<cublasLtMatmulAlgo_t>& proposals();
  std::vector<cublasLtMatmulAlgo_t> ask_for_proposals() const;
  bool computed_by(const cublasLtMatmulAlgo_t& algorithm) const;
  int timed_runs() const;
  std::string text() const;  // "the matmul [2, 3] x [3, 4]"
  void describe(cublasLtMatrixLayout_t& layout, mlg_dtype dtype, std::int64_t rows, std::int64_t columns,
                std::int64_t stride);
  void enqueue(const void* a, const void* b, const void* term, void* c, void* workspace,
               const cublasLtMatmulAlgo_t& algorithm);

  CublasLt& library_;
  GemmShape shape_;
  cublasLtMatmulDesc_t product_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, c_ = nullptr;
  cublasLtMatmulAlgo_t algorithm_{};
  bool ready_ = false;
};

}  // namespace mulligan::cuda
