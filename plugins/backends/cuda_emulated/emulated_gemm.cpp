#include "plugins/backends/cuda_emulated/emulated_device.h"

#include <mulligan/dtype.hpp>
#include <mulligan/kernel.hpp>

#include <cstring>
#include <vector>

namespace mulligan::cuda {
namespace {

// op(matrix) as floats: [rows, columns].
std::vector<float> read(const void* matrix, mlg_dtype dtype, std::int64_t rows, std::int64_t columns,
                        bool transpose) {
  std::vector<float> out(static_cast<std::size_t>(rows * columns));
  sdk::dispatch_compute(dtype, [&]<typename T>() {
    const T* in = static_cast<const T*>(matrix);
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) {
        out[static_cast<std::size_t>(i * columns + j)] =
            static_cast<float>(transpose ? in[j * rows + i] : in[i * columns + j]);
      }
    }
  });
  return out;
}

void multiply(const GemmShape& s, const void* a, const void* b, const void* term, void* c) {
  const std::vector<float> left = read(a, s.input, s.m, s.k, s.transpose_a);
  const std::vector<float> right = read(b, s.input, s.k, s.n, s.transpose_b);
  const auto alpha = static_cast<float>(s.alpha), beta = static_cast<float>(s.beta);
  std::vector<float> row(static_cast<std::size_t>(s.n));
  sdk::dispatch_compute(s.output, [&]<typename T>() {
    const T* added = static_cast<const T*>(term);
    T* out = static_cast<T*>(c);
    for (std::int64_t i = 0; i < s.m; ++i, out += s.n, added += s.n) {
      std::fill(row.begin(), row.end(), 0.0f);
      for (std::int64_t k = 0; k < s.k; ++k) {
        const float factor = left[static_cast<std::size_t>(i * s.k + k)];
        const float* terms = right.data() + k * s.n;
        for (std::int64_t j = 0; j < s.n; ++j) row[static_cast<std::size_t>(j)] += factor * terms[j];
      }
      for (std::int64_t j = 0; j < s.n; ++j) {
        const float product = alpha * row[static_cast<std::size_t>(j)];
        out[j] = T(beta == 0 ? product : product + beta * static_cast<float>(added[j]));
      }
    }
  });
}

}  // namespace

void EmulatedGemm::run(const DeviceArgument& a, const DeviceArgument& b, const DeviceArgument& term,
                       const DeviceArgument& c, void*) {
  device_.enqueue([this, a, b, term, c] {
    device_.note("library call: a matmul");
    const DeviceMemory& memory = device_.memory();
    memory.require_known(a.address, a.bytes, "a matmul reads of its argument a");
    memory.require_known(b.address, b.bytes, "a matmul reads of its argument b");
    if (shape_.beta != 0) memory.require_known(term.address, term.bytes, "a matmul reads of what it adds to");
    const auto in = static_cast<std::int64_t>(sdk::dtype_bytes(shape_.input)),
               out = static_cast<std::int64_t>(sdk::dtype_bytes(shape_.output));
    for (std::int64_t pair = 0; pair < shape_.batch; ++pair) {
      multiply(shape_, static_cast<const char*>(a.address) + pair * shape_.stride_a() * in,
               static_cast<const char*>(b.address) + pair * shape_.stride_b() * in,
               static_cast<const char*>(term.address) + pair * shape_.stride_c() * out,
               static_cast<char*>(c.address) + pair * shape_.stride_c() * out);
    }
    std::memset(memory.marks(c.address, c.bytes), 1, c.bytes);
  });
}

}  // namespace mulligan::cuda
