// Compiled without contraction to fused multiply-adds (CMakeLists.txt): initial weights must be the same to
// the bit on every machine, whatever it is compiled for.
//
// Each pair of rows takes a dot product and a subtraction of one from the other. Memory is the limit: the rows do not fit the
// inner caches, and the second sweep of a row can only begin when the row before is done. So one pass subtracts a row and
// computes the dot product with the next. The first sweep over the rows before a block takes the rows of the block together.
#include "framework/model/orthogonal.h"

#include <algorithm>
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

constexpr std::size_t kLanes = 8;  // of sums
constexpr std::size_t kBlock = 4;  // rows that are taken together

// Four doubles; with `default` instructions the compiler makes pairs of them.
typedef double Vector __attribute__((vector_size(4 * sizeof(double))));
constexpr std::size_t kWidth = sizeof(Vector) / sizeof(double), kParts = kLanes / kWidth;

MULLIGAN_INLINE void load(Vector& vector, const double* from) {
  std::memcpy(&vector, from, sizeof vector);
}
MULLIGAN_INLINE void store(double* to, const Vector& vector) {
  std::memcpy(to, &vector, sizeof vector);
}

// rows[r] -= overlap[r] * earlier for Rows rows; where `next` is not null, `overlap` then becomes their dot
// matmuls with it. `earlier` may be null: nothing is subtracted.
template <std::size_t Rows>
MULLIGAN_INLINE void subtract_and_project(double* const* rows, const double* earlier, const double* next,
                                          double (&overlap)[Rows], std::size_t length) {
  Vector sums[Rows][kParts] = {};
  std::size_t i = 0;
  for (; i + kLanes <= length; i += kLanes) {
    for (std::size_t part = 0; part < kParts; ++part) {
      const std::size_t place = i + part * kWidth;
      Vector old{}, coming{};
      if (earlier) load(old, earlier + place);
      if (next) load(coming, next + place);
      for (std::size_t r = 0; r < Rows; ++r) {
        Vector row;
        load(row, rows[r] + place);
        if (earlier) {
          row -= overlap[r] * old;
          store(rows[r] + place, row);
        }
        if (next) sums[r][part] += row * coming;
      }
    }
  }
  for (std::size_t r = 0; r < Rows; ++r) {
    double total = 0;
    for (std::size_t k = i; k < length; ++k) {
      if (earlier) rows[r][k] -= overlap[r] * earlier[k];
      if (next) total += rows[r][k] * next[k];
    }
    if (!next) continue;
    for (std::size_t part = 0; part < kParts; ++part) {
      for (std::size_t lane = 0; lane < kWidth; ++lane) total += sums[r][part][lane];
    }
    overlap[r] = total;
  }
}

// Makes Rows rows orthogonal to `count` orthonormal ones, one of these after the other.
template <std::size_t Rows>
MULLIGAN_INLINE void sweep(double* const* rows, const double* first, std::size_t count, std::size_t length) {
  if (count == 0) return;
  double overlap[Rows] = {};
  const double* at = first;
  subtract_and_project<Rows>(rows, nullptr, at, overlap, length);
  for (std::size_t j = 1; j < count; ++j, at += length)
    subtract_and_project<Rows>(rows, at, at + length, overlap, length);
  subtract_and_project<Rows>(rows, at, nullptr, overlap, length);
}

MULLIGAN_INLINE void normalise(double* row, std::size_t length) {
  double square[1] = {};
  subtract_and_project<1>(&row, nullptr, row, square, length);
  const double inverse = 1.0 / std::sqrt(square[0]);
  for (std::size_t k = 0; k < length; ++k) row[k] *= inverse;
}

MULLIGAN_FOR_WIDE_VECTORS void orthonormalise(double* vectors, std::size_t count, std::size_t length) {
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    const std::size_t end = std::min(count, begin + kBlock);
    double* rows[kBlock] = {};
    for (std::size_t i = begin; i < end; ++i) rows[i - begin] = vectors + i * length;
    if (end - begin == kBlock) {
      sweep<kBlock>(rows, vectors, begin, length);
    } else {
      for (std::size_t i = 0; i < end - begin; ++i) sweep<1>(rows + i, vectors, begin, length);
    }
    for (std::size_t i = begin; i < end; ++i) {
      double* row = rows[i - begin];
      sweep<1>(&row, vectors + begin * length, i - begin, length);
      sweep<1>(&row, vectors, i, length);
      normalise(row, length);
    }
  }
}

}  // namespace

void make_orthonormal(std::span<double> vectors, std::size_t count, std::size_t length) {
  orthonormalise(vectors.data(), count, length);
}

}  // namespace mulligan
