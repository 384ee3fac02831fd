// Element-wise passes over score tiles S[keys, kTile] (rows are keys, columns are queries), and their
// conversion to words for the next product.
#pragma once

#include "plugins/backends/cpu/cpu_kernel.h"
#include "plugins/backends/cpu/math/tile_amx.h"

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
template <typename Math>
inline void store_row_words(typename Math::Word* to, FloatVector first, FloatVector second);

template <>
inline void store_row_words<F32Math>(float* to, FloatVector first, FloatVector) {
  store_vector(to, first);
}

#if defined(__AVX512BF16__)
// The bits of `values` in bf16, rounded to nearest even. (Vector extensions beyond the conversion itself: GCC
// 12 warns of uninitialised values inside the AVX-512 intrinsics, its bug 105593.)
using HalfWords = std::uint16_t __attribute__((vector_size(kVectorBytes / 2)));
using Words = std::uint32_t __attribute__((vector_size(kVectorBytes)));
inline HalfWords bf16_bits(FloatVector values) {
  return reinterpret_cast<HalfWords>(_mm512_cvtneps_pbh(values));
}

template <>
inline void store_row_words<Bf16Math>(std::uint32_t* to, FloatVector first, FloatVector second) {
  const Words words = __builtin_convertvector(bf16_bits(first), Words) |
                      __builtin_convertvector(bf16_bits(second), Words) << 16;
  std::memcpy(to, &words, sizeof words);
}
#endif

#if defined(MULLIGAN_AMX)
template <>
inline void store_row_words<AmxBf16Math>(std::uint32_t* to, FloatVector first, FloatVector second) {
  store_row_words<Bf16Math>(to, first, second);
}
#endif

// Words along the queries: kLanes / kStep of them.
template <typename Math>
inline void store_column_words(typename Math::Word* to, FloatVector values);

template <>
inline void store_column_words<F32Math>(float* to, FloatVector values) {
  store_vector(to, values);
}

#if defined(__AVX512BF16__)
template <>
inline void store_column_words<Bf16Math>(std::uint32_t* to, FloatVector values) {
  const HalfWords halves = bf16_bits(values);
  std::memcpy(to, &halves, sizeof halves);
}
#endif

#if defined(MULLIGAN_AMX)
template <>
inline void store_column_words<AmxBf16Math>(std::uint32_t* to, FloatVector values) {
  store_column_words<Bf16Math>(to, values);
}
#endif

}  // namespace mulligan::cpu
