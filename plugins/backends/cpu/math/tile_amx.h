// bf16 tile matmuls on Intel's matrix unit (AMX): each instruction computes 16 x 16 sums of 32 terms.
//
// The words of Bf16Math, pairs of neighbouring bf16 along k, are already the layout the unit wants,
// for A [rows, k words] as for B [k words, columns]. The unit takes denormal inputs for zero and
// rounds to nearest even.
#pragma once

#include "plugins/backends/cpu/math/tile_math.h"

#if defined(__AMX_BF16__) && defined(__AMX_TILE__) && defined(__AVX512BF16__)
#define MULLIGAN_AMX 1

namespace mulligan::cpu {

// True when the operating system lets this process use the matrix unit; asks it at the first call.
bool amx_usable();

// While it lives, this thread's tile registers have the shape that AmxBf16Math needs. Other users of the unit
// (oneDNN) set their own before each use.
class AmxTiles {
 public:
  AmxTiles() {
    static constexpr Configuration configuration;
    _tile_loadconfig(&configuration);
  }
  ~AmxTiles() { _tile_release(); }
  AmxTiles(const AmxTiles&) = delete;
  AmxTiles& operator=(const AmxTiles&) = delete;

 private:
  struct alignas(64) Configuration {
    std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
    std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  };
};

struct AmxBf16Math : Bf16Math {
  static constexpr bool kMatrixUnit = true;
  using Registers = AmxTiles;
  static constexpr std::int64_t kEdge = 16;  // rows, columns and k words of one instruction

  // tile_matmul for Order::rows. Rows and k words beyond multiples of 16 go to the vector unit; which do
  // depends on the shape only.
  template <Update kUpdate>
  static void matmul(std::int64_t rows, std::int64_t vectors, std::int64_t k, const Word* a, std::int64_t lda,
                     const Word* b, std::int64_t ldb, float* c, std::int64_t ldc, const float* scale) {
    const std::int64_t tile_rows = k < kEdge ? 0 : rows / kEdge * kEdge, tile_k = k / kEdge * kEdge;
    if constexpr (kUpdate == Update::scale_add) {
      for (std::int64_t r = 0; r < tile_rows; ++r) {
        for (std::int64_t v = 0; v < vectors * kEdge; v += kEdge) {
          store_vector(c + r * ldc + v, load_vector(c + r * ldc + v) * load_vector(scale + v));
        }
      }
    }
    for (std::int64_t r = 0; r < tile_rows; r += 2 * kEdge) {
      for (std::int64_t v = 0; v < vectors; v += 2) {
        const Word *left = a + r * lda, *right = b + v * kEdge;
        float* to = c + r * ldc + v * kEdge;
        const bool two_rows = r + kEdge < tile_rows, two_columns = v + 1 < vectors;
        constexpr bool kSet = kUpdate == Update::set;
        if (two_rows && two_columns) block<kSet, true, true>(tile_k, left, lda, right, ldb, to, ldc);
        if (two_rows && !two_columns) block<kSet, true, false>(tile_k, left, lda, right, ldb, to, ldc);
        if (!two_rows && two_columns) block<kSet, false, true>(tile_k, left, lda, right, ldb, to, ldc);
        if (!two_rows && !two_columns) block<kSet, false, false>(tile_k, left, lda, right, ldb, to, ldc);
      }
    }
    if (tile_rows > 0 && tile_k < k) {
      tile_matmul<Bf16Math, Update::add, Order::rows>(tile_rows, vectors, k - tile_k, a + tile_k, lda,
                                                      b + tile_k * ldb, ldb, c, ldc);
    }
    if (tile_rows < rows) {
      tile_matmul<Bf16Math, kUpdate, Order::rows>(rows - tile_rows, vectors, k, a + tile_rows * lda, lda, b,
                                                  ldb, c + tile_rows * ldc, ldc, scale);
    }
  }

 private:
  // Sums in tiles 0 to 3, A in 4 and 5, B in 6 and 7.
  template <bool kSet, bool kTwoRows, bool kTwoColumns>
  static void block(std::int64_t k, const Word* a, std::int64_t lda, const Word* b, std::int64_t ldb,
                    float* c, std::int64_t ldc) {
    const std::size_t c_bytes = static_cast<std::size_t>(ldc) * 4,
                      a_bytes = static_cast<std::size_t>(lda) * 4,
                      b_bytes = static_cast<std::size_t>(ldb) * 4;
    float* below = c + kEdge * ldc;
    // GCC's intrinsics do not tell the compiler that they read and write memory.
    asm volatile("" ::: "memory");
    if constexpr (kSet) {
      _tile_zero(0);
      if constexpr (kTwoColumns) _tile_zero(1);
      if constexpr (kTwoRows) _tile_zero(2);
      if constexpr (kTwoRows && kTwoColumns) _tile_zero(3);
    } else {
      _tile_loadd(0, c, c_bytes);
      if constexpr (kTwoColumns) _tile_loadd(1, c + kEdge, c_bytes);
      if constexpr (kTwoRows) _tile_loadd(2, below, c_bytes);
      if constexpr (kTwoRows && kTwoColumns) _tile_loadd(3, below + kEdge, c_bytes);
    }
    for (std::int64_t i = 0; i < k; i += kEdge) {
      _tile_loadd(6, b + i * ldb, b_bytes);
      _tile_loadd(4, a + i, a_bytes);
      _tile_dpbf16ps(0, 4, 6);
      if constexpr (kTwoColumns) {
        _tile_loadd(7, b + i * ldb + kEdge, b_bytes);
        _tile_dpbf16ps(1, 4, 7);
      }
      if constexpr (kTwoRows) {
        _tile_loadd(5, a + kEdge * lda + i, a_bytes);
        _tile_dpbf16ps(2, 5, 6);
      }
      if constexpr (kTwoRows && kTwoColumns) _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, c, c_bytes);
    if constexpr (kTwoColumns) _tile_stored(1, c + kEdge, c_bytes);
    if constexpr (kTwoRows) _tile_stored(2, below, c_bytes);
    if constexpr (kTwoRows && kTwoColumns) _tile_stored(3, below + kEdge, c_bytes);
    asm volatile("" ::: "memory");
  }
};

}  // namespace mulligan::cpu
#endif
