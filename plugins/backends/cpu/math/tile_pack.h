// Loading rows of f32 or bf16 tensors into tiles of words (tile_math.h), zero-padded.
#pragma once

#include <mulligan/kernel.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "plugins/backends/cpu/math/tile_math.h"

namespace mulligan::cpu {

constexpr std::int64_t round_up(std::int64_t n, std::int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

// to[rows, ld]: words along the width. The words from the width to ld become zero.
template <typename Math, typename T>
void pack_rows(const T* from, std::int64_t stride, std::int64_t rows, std::int64_t width,
               typename Math::Word* to, std::int64_t ld) {
  const auto used = static_cast<std::size_t>(width) * sizeof(typename Math::Word) / Math::kStep,
             row = static_cast<std::size_t>(ld) * sizeof(typename Math::Word);
  for (std::int64_t r = 0; r < rows; ++r, from += stride, to += ld) {
    if constexpr (std::is_same_v<T, float> || Math::kStep == 2) {
      static_assert(sizeof(T) * Math::kStep == sizeof(typename Math::Word));
      std::memcpy(to, from, used);
    } else {
      for (std::int64_t j = 0; j < width; ++j) to[j] = from[j];
    }
    if (used < row) std::memset(reinterpret_cast<char*>(to) + used, 0, row - used);
  }
}

// to[rows / kStep, ld]: words along the rows (for F32Math the same as pack_rows). A missing last row
// counts as zero.
template <typename Math, typename T>
void pack_row_words(const T* from, std::int64_t stride, std::int64_t rows, std::int64_t width,
                    typename Math::Word* to, std::int64_t ld) {
  if constexpr (Math::kStep == 1) {
    pack_rows<Math>(from, stride, rows, width, to, ld);
  } else {
    for (std::int64_t r = 0; r < rows; r += 2, from += 2 * stride, to += ld) {
      if (r + 1 < rows) {
        for (std::int64_t j = 0; j < width; ++j) {
          to[j] = static_cast<std::uint32_t>(from[j].bits) | static_cast<std::uint32_t>(from[j + stride].bits)
                                                                 << 16;
        }
      } else {
        for (std::int64_t j = 0; j < width; ++j) to[j] = from[j].bits;
      }
      std::fill(to + width, to + ld, 0u);
    }
  }
}

namespace tile_detail {

// Vector: kLanes elements.
template <int kBit, typename Vector>
inline void transpose_stage(Vector (&rows)[kLanes]) {
  using Indices = decltype(rows[0] == rows[0]);
  Indices low, high;
  for (int lane = 0; lane < kLanes; ++lane) {
    low[lane] = (lane & kBit) == 0 ? lane : kLanes + lane - kBit;
    high[lane] = (lane & kBit) == 0 ? lane + kBit : kLanes + lane;
  }
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) {
    if ((i & kBit) != 0) continue;
    const Vector a = rows[i], b = rows[i + kBit];
    rows[i] = __builtin_shuffle(a, b, low);
    rows[i + kBit] = __builtin_shuffle(a, b, high);
  }
  if constexpr (kBit > 1) transpose_stage<kBit / 2>(rows);
}

}  // namespace tile_detail

// to[j, i] = from[i, j] for i, j < kLanes; elements of four bytes or of two, moved as bits.
template <typename T>
void transpose_block(const T* from, std::int64_t ld_from, T* to, std::int64_t ld_to) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int16_t>;
  using Vector [[gnu::vector_size(kLanes * sizeof(T))]] = Bits;
  Vector block[kLanes];
#pragma GCC unroll 16
  for (int r = 0; r < kLanes; ++r) std::memcpy(&block[r], from + r * ld_from, sizeof(Vector));
  tile_detail::transpose_stage<kLanes / 2>(block);
#pragma GCC unroll 16
  for (int r = 0; r < kLanes; ++r) std::memcpy(static_cast<void*>(to + r * ld_to), &block[r], sizeof(Vector));
}

// to[j, i] = from[i, j] for i < rows, j < columns, both multiples of kLanes; words of four bytes.
inline void transpose_words(const void* from, std::int64_t ld_from, std::int64_t rows, std::int64_t columns,
                            void* to, std::int64_t ld_to) {
  const auto* source = static_cast<const std::int32_t*>(from);
  auto* target = static_cast<std::int32_t*>(to);
  for (std::int64_t i = 0; i < rows; i += kLanes) {
    for (std::int64_t j = 0; j < columns; j += kLanes)
      transpose_block(source + i * ld_from + j, ld_from, target + j * ld_to + i, ld_to);
  }
}

}  // namespace mulligan::cpu
