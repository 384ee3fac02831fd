// One matrix product by cuBLASLt.
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

class CublasLtGemm final : public Gemm {
 public:
  // What algorithms may demand of addresses. cuBLASLt's default, 256 bytes, is more than a view of
  // a tensor has.
  static constexpr std::uint32_t kAlignment = 16;

  // Throws std::runtime_error when cuBLASLt has no algorithm for the shape.
  CublasLtGemm(CublasLt& library, const GemmShape& shape);
  ~CublasLtGemm() override;

  const GemmShape& shape() const { return shape_; }
  // Times the algorithms that cuBLASLt proposes, on random numbers of the product's size, and returns the
  // bytes of the fastest; one that fails is left out. Throws std::runtime_error when all fail.
  std::string measure();
  // Takes its class's algorithm, where that computes this product as well, or else the first that cuBLASLt
  // proposes. Leaves it for later where another process is measuring it now, unless it may `wait`.
  void try_ready(bool wait);

  std::uint32_t measurement() const override;
  void make_ready() override { try_ready(true); }
  std::size_t workspace_bytes() const override;
  void run(const DeviceArgument& a, const DeviceArgument& b, const DeviceArgument& term,
           const DeviceArgument& c, void* workspace) override;

 private:
  std::vector<cublasLtMatmulAlgo_t> proposals();
  bool computed_by(const cublasLtMatmulAlgo_t& algorithm) const;
  int timed_runs() const;
  std::string text() const;  // "the product [2, 3] x [3, 4]"
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
