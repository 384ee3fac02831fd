// Compiled without contraction to fused multiply-adds (CMakeLists.txt): initial weights must be the same to
// the bit on every machine, whatever it is compiled for.
#include "framework/model/orthogonal.h"

#include <cmath>
#include <cstring>

#if defined(__x86_64__) && !defined(MULLIGAN_NO_AVX2)
#define MULLIGAN_FOR_WIDE_VECTORS __attribute__((target_clones("avx2", "default")))
#else
#define MULLIGAN_FOR_WIDE_VECTORS
#endif
#define MULLIGAN_INLINE inline __attribute__((always_inline))

namespace mulligan {
namespace {

// Four doubles; with `default` instructions the compiler makes pairs of them. Two of them are the lanes of a sum.
typedef double Vector __attribute__((vector_size(4 * sizeof(double))));
constexpr std::size_t kWidth = 4, kLanes = 2 * kWidth;

MULLIGAN_INLINE double dot(const double* a, const double* b, std::size_t length) {
  Vector sums[2] = {};
  std::size_t i = 0;
  for (; i + kLanes <= length; i += kLanes) {
    for (std::size_t part = 0; part < 2; ++part) {
      Vector left, right;
      std::memcpy(&left, a + i + part * kWidth, sizeof left);
      std::memcpy(&right, b + i + part * kWidth, sizeof right);
      sums[part] += left * right;
    }
  }
  double total = 0;
  for (; i < length; ++i) total += a[i] * b[i];
  for (std::size_t lane = 0; lane < kLanes; ++lane) total += sums[lane / kWidth][lane % kWidth];
  return total;
}

MULLIGAN_FOR_WIDE_VECTORS void orthonormalise(double* vectors, std::size_t count, std::size_t length) {
  for (std::size_t i = 0; i < count; ++i) {
    double* row = vectors + i * length;
    for (int sweep = 0; sweep < 2; ++sweep) {
      for (const double* earlier = vectors; earlier != row; earlier += length) {
        const double overlap = dot(row, earlier, length);
        for (std::size_t k = 0; k < length; ++k) row[k] -= overlap * earlier[k];
      }
    }
    const double inverse = 1.0 / std::sqrt(dot(row, row, length));
    for (std::size_t k = 0; k < length; ++k) row[k] *= inverse;
  }
}

}  // namespace

void make_orthonormal(std::span<double> vectors, std::size_t count, std::size_t length) {
  orthonormalise(vectors.data(), count, length);
}

}  // namespace mulligan
