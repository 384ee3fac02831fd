// Loops shared by the kernels that work on rows or on single elements.
//
// Results never depend on how rows are divided among threads: a row is always summed in the same kLanes
// partial sums, and element loops are cut at multiples of kElementBlock.
#pragma once

#ifdef __AVX512F__
#include <immintrin.h>
#endif

#include <mulligan/lane_sum.hpp>

#include <array>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "plugins/backends/cpu/cpu_kernel.h"

namespace mulligan::cpu {

using sdk::fold_lanes;
using sdk::kLanes;
using sdk::lane_sum;
using sdk::lane_sums;

// Elements that are narrowed to 16 bits at once.
inline constexpr int kNarrowed = 32;

#ifdef __AVX512BF16__
// 32 floats to bf16, to nearest even. Unlike bfloat16's constructor the instruction takes numbers below
// 2^-126 for zero.
inline void narrow(const float* from, bfloat16* to) {
  const __m512bh packed = _mm512_cvtne2ps_pbh(_mm512_loadu_ps(from + 16), _mm512_loadu_ps(from));
  _mm512_storeu_si512(to, reinterpret_cast<const __m512i&>(packed));
}
#else
inline void narrow(const float* from, bfloat16* to) {
  for (int lane = 0; lane < kNarrowed; ++lane) to[lane] = bfloat16(from[lane]);
}
#endif

#ifdef __AVX512F__
inline void narrow(const float* from, float16* to) {
  for (int part = 0; part < 2; ++part) {
    // With a mask of all: g++ 12 takes the instruction without one for a read of nothing (GCC bug 105593).
    const __m256i packed =
        _mm512_maskz_cvtps_ph(0xffff, _mm512_loadu_ps(from + 16 * part), _MM_FROUND_TO_NEAREST_INT);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 16 * part), packed);
  }
}
#else
inline void narrow(const float* from, float16* to) {
  for (int lane = 0; lane < kNarrowed; ++lane) to[lane] = float16(from[lane]);
}
#endif

// row[j] = value(j) for every j. value(j) may read row[j] of an aliased input.
template <typename T, typename Value>
[[gnu::always_inline]] inline void fill_row(T* row, std::int64_t count, Value&& value) {
  constexpr bool narrowed = sizeof(T) == 2;
  const std::int64_t whole = narrowed ? count / kNarrowed * kNarrowed : 0;
  if constexpr (narrowed) {
    for (std::int64_t j = 0; j < whole; j += kNarrowed) {
      alignas(64) float block[kNarrowed];
      for (int lane = 0; lane < kNarrowed; ++lane) block[lane] = value(j + lane);
      narrow(block, row + j);
    }
  }
#pragma GCC ivdep
  for (std::int64_t j = whole; j < count; ++j) row[j] = T(value(j));
}

// The same, or row[j] += value(j) where `accumulate`.
template <typename T, typename Value>
[[gnu::always_inline]] inline void write_row(T* row, std::int64_t count, bool accumulate, Value&& value) {
  if (accumulate) {
    fill_row(row, count, [=](std::int64_t j) { return static_cast<float>(row[j]) + value(j); });
  } else {
    fill_row(row, count, value);
  }
}

// Columns that a kernel with many inputs and outputs takes at once: intermediate results of a block stay in
// registers, and all rows advance together, which keeps memory busy.
inline constexpr std::int64_t kBlock = 64;

// body(column, count) over the blocks of a row; `count` is a compile-time kBlock for all but a
// shorter last one.
template <typename Body>
[[gnu::always_inline]] inline void for_blocks(std::int64_t width, Body&& body) {
  const std::int64_t whole = width / kBlock * kBlock;
  for (std::int64_t column = 0; column < whole; column += kBlock) {
    body(column, std::integral_constant<std::int64_t, kBlock>());
  }
  if (whole < width) body(whole, width - whole);
}

// 1 / sqrt(mean square + eps) of a row of `count` elements.
inline float reciprocal_rms(float sum_of_squares, std::int64_t count, float eps) {
  return 1.0f / std::sqrt(sum_of_squares / static_cast<float>(count) + eps);
}

// Rows of `width` elements that are worth a thread's while.
inline std::int64_t row_grain(std::int64_t width) {
  return std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, width));
}

// body(row) for `rows` rows of `width` elements.
template <typename Body>
void for_rows(const Launch& launch, std::int64_t rows, std::int64_t width, Body&& body) {
  launch.for_each(rows, row_grain(width), body);
}

// norm'(dn) = factor dn - along y, the gradient of n = scale y / rms(y) for a row y(j); zero without dn.
struct NormGradient {
  float factor = 0, along = 0;

  template <typename T, typename Y>
  NormGradient(std::int64_t width, float scale, float eps, const T* dn, Y&& y) {
    if (!dn) return;
    const auto [squares, product] = lane_sums<2>(width, [=](std::int64_t j) {
      const float value = y(j);
      return std::array{value * value, value * float(dn[j])};
    });
    const float r = reciprocal_rms(squares, width, eps);
    factor = scale * r;
    along = factor * r * r * product / static_cast<float>(width);
  }

  // g[i] = dy + norm'(dn) of the columns from `column` on; dy may be absent.
  template <typename T, typename Y>
  [[gnu::always_inline]] void fill(float* g, std::int64_t column, auto count, const T* dy, const T* dn,
                                   Y&& y) const {
    if (dn) {
      fill_row(g, count, [=, factor = factor, along = along](std::int64_t i) {
        return factor * float(dn[column + i]) - along * y(column + i);
      });
    }
    if (dy) write_row(g, count, dn != nullptr, [=](std::int64_t i) { return float(dy[column + i]); });
    if (!dy && !dn) fill_row(g, count, [](std::int64_t) { return 0.0f; });
  }
};

// Floats of workspace for `count` values when another array follows: keeps 64-byte alignment.
inline std::int64_t aligned_floats(std::int64_t count) {
  return (count + 15) / 16 * 16;
}

inline constexpr std::int64_t kElementBlock = 4096;

// body(begin, end) over [0, count), cut at multiples of kElementBlock.
template <typename Body>
void for_elements(const Launch& launch, std::int64_t count, Body&& body) {
  launch.parallel_for((count + kElementBlock - 1) / kElementBlock, 4,
                      [&](std::int64_t first, std::int64_t last) {
                        body(first * kElementBlock, std::min(count, last * kElementBlock));
                      });
}

// y[i] = value(i), or y[i] += value(i) where `accumulate`, for every element of the argument `y`.
template <typename T, typename Value>
void write_elements(const Launch& launch, std::uint32_t y, bool accumulate, Value&& value) {
  for_elements(launch, launch.size(y), [&](std::int64_t begin, std::int64_t end) {
    write_row(launch.data<T>(y) + begin, end - begin, accumulate,
              [=](std::int64_t i) { return value(begin + i); });
  });
}

// Extent of the last axis, and the number of rows before it.
inline std::int64_t row_width(const Launch& launch, std::uint32_t argument) {
  const mlg_tensor& t = launch.tensor(argument);
  return t.shape[t.rank - 1];
}
inline std::int64_t row_count(const Launch& launch, std::uint32_t argument) {
  const std::int64_t width = row_width(launch, argument);
  return width == 0 ? 0 : launch.size(argument) / width;
}

// A row of an argument [rows, width]; null where that is absent.
template <typename T>
T* row_of(const Launch& launch, std::uint32_t argument, std::int64_t row, std::int64_t width) {
  return launch.has(argument) ? launch.data<T>(argument) + row * width : nullptr;
}

}  // namespace mulligan::cpu
