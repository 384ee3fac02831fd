// Element-wise passes over score tiles S[keys, kTile] (rows are keys, columns are queries), and their
// conversion to words for the next matmul.
#pragma once

#include "plugins/backends/cpu/cpu_kernel.h"
#include "plugins/backends/cpu/math/tile_math.h"

namespace mulligan::cpu {

// Low enough that exp2 of it is 0, and finite, so that differences of two of them are not NaN.
inline constexpr float kMaskedScore = -1e30f;

// Bit pattern of the causal mask inside a diagonal tile: query column c sees key row r where r <= c.
inline FloatVector mask_future(FloatVector scores, std::int64_t row, std::int64_t first_column) {
  IntVector column;
  for (int lane = 0; lane < kLanes; ++lane) column[lane] = lane;
  const IntVector visible =
      column + static_cast<std::int32_t>(first_column) >= static_cast<std::int32_t>(row);
  return visible ? scores : broadcast(kMaskedScore);
}

// Masks the diagonal sub-blocks of a diagonal tile: rows and columns of the same kLanes positions.
inline void mask_diagonal(float* scores, std::int64_t rows) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t column = row / kLanes * kLanes;
    float* at = scores + row * kTile + column;
    store_vector(at, mask_future(load_vector(at), row, column));
  }
}

// Masks all that the queries of a diagonal tile must not see, where the whole tile is computed.
inline void mask_diagonal_tile(float* scores, std::int64_t rows, std::int64_t vectors) {
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t v = 0; v < vectors && v * kLanes < row; ++v) {
      float* at = scores + row * kTile + v * kLanes;
      store_vector(at, mask_future(load_vector(at), row, v * kLanes));
    }
  }
}

// Each element as it is in T, rounded to nearest even. For numbers of T's range; f32 stays as it is.
template <typename T>
inline FloatVector rounded(FloatVector values) {
  if constexpr (std::is_same_v<T, float>) {
    return values;
  } else if constexpr (std::is_same_v<T, bfloat16>) {
    const IntVector bits = reinterpret_cast<IntVector>(values);
    const IntVector up = bits + 0x7FFF + ((bits >> 16) & 1);
    return reinterpret_cast<FloatVector>(up & ~0xFFFF);
  } else {
    for (int lane = 0; lane < kLanes; ++lane) values[lane] = static_cast<float>(T(values[lane]));
    return values;
  }
}

// Words along the keys from two rows of one vector (the second counts as zero for an odd last row).
inline void store_row_words(float* to, FloatVector first, FloatVector) {
  store_vector(to, first);
}

// Words along the queries, a vector of elements in each of two rows that lie `ld` words apart.
inline void store_column_words(float* to, std::int64_t ld, FloatVector first, FloatVector second) {
  store_vector(to, first);
  store_vector(to + ld, second);
}

#if defined(__AVX512BF16__)
// The bits of `first` and after them those of `second` in bf16, rounded to nearest even.
using HalfWords = std::uint16_t __attribute__((vector_size(kVectorBytes)));
inline HalfWords bf16_bits(FloatVector first, FloatVector second) {
  return reinterpret_cast<HalfWords>(
      _mm512_cvtne2ps_pbh(reinterpret_cast<__m512>(second), reinterpret_cast<__m512>(first)));
}

inline void store_row_words(std::uint32_t* to, FloatVector first, FloatVector second) {
  HalfWords by_turns;
  for (int i = 0; i < kLanes; ++i) {
    by_turns[2 * i] = static_cast<std::uint16_t>(i);
    by_turns[2 * i + 1] = static_cast<std::uint16_t>(kLanes + i);
  }
  const HalfWords words = __builtin_shuffle(bf16_bits(first, second), by_turns);
  std::memcpy(to, &words, sizeof words);
}

inline void store_column_words(std::uint32_t* to, std::int64_t ld, FloatVector first, FloatVector second) {
  using Quarters = std::int64_t __attribute__((vector_size(kVectorBytes)));
  const auto both = reinterpret_cast<Quarters>(bf16_bits(first, second));
  const auto low = __builtin_shufflevector(both, both, 0, 1, 2, 3);
  const auto high = __builtin_shufflevector(both, both, 4, 5, 6, 7);
  std::memcpy(to, &low, sizeof low);
  std::memcpy(to + ld, &high, sizeof high);
}
#endif

}  // namespace mulligan::cpu
