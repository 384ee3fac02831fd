#include "tests/gpu_device/stub/cublaslt_matmul.h"

#include <mulligan/kernel.hpp>

#include <vector>

namespace stub_cublaslt {
namespace {

// Calls body(T{}) with the layout's type.
template <typename Body>
void dispatch(const Layout& layout, Body&& body) {
  if (layout.type == CUDA_R_32F) return body(float{});
  if (layout.type == CUDA_R_16BF) return body(mulligan::sdk::bfloat16{});
  body(mulligan::sdk::float16{});
}

// op(pair `pair`) as [rows, columns] of floats, row by row; `transposed`: as [columns, rows].
std::vector<float> read(const Layout& layout, const void* data, std::int32_t pair, bool transposed) {
  std::vector<float> out(static_cast<std::size_t>(layout.rows * layout.columns));
  dispatch(layout, [&]<typename T>(T) {
    const T* first = static_cast<const T*>(data) + pair * layout.stride;
    for (std::uint64_t column = 0; column < layout.columns; ++column) {
      for (std::uint64_t row = 0; row < layout.rows; ++row) {
        const auto from = static_cast<std::int64_t>(column) * layout.leading + static_cast<std::int64_t>(row);
        out[transposed ? column * layout.rows + row : row * layout.columns + column] =
            static_cast<float>(first[from]);
      }
    }
  });
  return out;
}

}  // namespace

void multiply(const Operands& all) {
  const Layout& d = all.d_layout;
  const std::size_t m = d.rows, n = d.columns;
  const bool a_transposed = all.matmul.a != CUBLAS_OP_N, b_transposed = all.matmul.b != CUBLAS_OP_N;
  const std::size_t inner = a_transposed ? all.a_layout.rows : all.a_layout.columns;
  std::vector<float> sums(m);
  for (std::int32_t pair = 0; pair < d.batch; ++pair) {
    // op(a) as [inner, m], op(b) as [n, inner].
    const std::vector<float> left = read(all.a_layout, all.a, pair, !a_transposed),
                             right = read(all.b_layout, all.b, pair, !b_transposed);
    for (std::size_t j = 0; j < n; ++j) {
      sums.assign(m, 0.0f);
      for (std::size_t k = 0; k < inner; ++k) {
        const float factor = right[j * inner + k];
        const float* terms = left.data() + k * m;
        for (std::size_t i = 0; i < m; ++i) sums[i] += factor * terms[i];
      }
      dispatch(d, [&]<typename T>(T) {
        const auto column = static_cast<std::int64_t>(j);
        const T* added =
            static_cast<const T*>(all.c) + pair * all.c_layout.stride + column * all.c_layout.leading;
        T* out = static_cast<T*>(all.d) + pair * d.stride + column * d.leading;
        for (std::size_t i = 0; i < m; ++i) {
          const float matmul = all.alpha * sums[i];
          out[i] = T(all.beta == 0 ? matmul : matmul + all.beta * static_cast<float>(added[i]));
        }
      });
    }
  }
}

}  // namespace stub_cublaslt
