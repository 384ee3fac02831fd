// What cuBLASLt's stub knows of a matmul, and how it computes it.
#pragma once

#include <cublasLt.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace stub_cublaslt {

// A matrix by columns, and how far its pairs lie apart.
struct Layout {
  cudaDataType_t type;
  std::uint64_t rows, columns;
  std::int64_t leading;
  std::int32_t batch = 1;
  std::int64_t stride = 0;

  std::uint64_t elements() const { return (columns - 1) * static_cast<std::uint64_t>(leading) + rows; }
  std::size_t element_bytes() const { return type == CUDA_R_32F ? 4 : 2; }
  // From the first element to the end of the last.
  std::size_t bytes() const {
    return element_bytes() *
           (static_cast<std::uint64_t>(batch - 1) * static_cast<std::uint64_t>(stride) + elements());
  }
  std::string text() const {
    std::string text = std::to_string(type);
    for (const auto number : {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(columns), leading,
                              static_cast<std::int64_t>(batch), stride})
      text += " " + std::to_string(number);
    return text + ";";
  }
};
struct Matmul {
  cublasComputeType_t compute;
  cublasOperation_t a = CUBLAS_OP_N, b = CUBLAS_OP_N;
};
struct Operands {
  Matmul matmul;
  Layout a_layout, b_layout, c_layout, d_layout;
  const void *a, *b, *c;
  void* d;
  float alpha = 1, beta = 0;
};

// d = alpha op(a) op(b) + beta c, summed in f32; c is not read where beta is 0.
void multiply(const Operands& operands);

}  // namespace stub_cublaslt
