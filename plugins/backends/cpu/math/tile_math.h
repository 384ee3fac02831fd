// Small dense matmuls on tiles that fit the first-level caches: the arithmetic of attention.
//
// Vectors are GCC vector extensions of the target's width. A matmul C[rows, columns] (+)= A[rows, k] B[k,
// columns] keeps a block of C in registers, broadcasts elements of A and reads vectors of B. Its k axis
// counts words: a word is one float (F32Math) or a pair of neighbouring bf16 along k (Bf16Math, one
// AVX512-BF16 dot product of two terms).
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace mulligan::cpu {

#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
inline constexpr int kVectorBytes = 32;
#else
inline constexpr int kVectorBytes = 16;
#endif
inline constexpr int kLanes = kVectorBytes / 4;

using FloatVector = float __attribute__((vector_size(kVectorBytes)));
using IntVector = std::int32_t __attribute__((vector_size(kVectorBytes)));

// Tile edge: queries per tile and keys per tile.
inline constexpr int kTile = 64;

inline FloatVector load_vector(const float* from) {
  FloatVector v;
  std::memcpy(&v, from, sizeof v);
  return v;
}
inline void store_vector(float* to, FloatVector v) {
  std::memcpy(to, &v, sizeof v);
}
inline FloatVector broadcast(float x) {
  return FloatVector{} + x;
}
inline FloatVector larger(FloatVector a, FloatVector b) {
  return a > b ? a : b;
}

// 2^x. Relative error below 7.2e-8 for x >= -126; below that it goes down to 0 by way of denormal numbers (AVX-512)
// or is exactly 0 from -126.5 down; NaN stays NaN. The caller keeps x below 128.
inline FloatVector exp2_vector(FloatVector x) {
#if defined(__AVX512F__)
  // (Masked: GCC 12 warns of uninitialised values inside the plain intrinsics, its bug 105593.)
  const auto whole =
      reinterpret_cast<FloatVector>(_mm512_maskz_roundscale_ps(0xFFFF, reinterpret_cast<__m512>(x), 0));
  const FloatVector f = x - whole;
#else
  const FloatVector bounded = x < -127.0f ? broadcast(-127.0f) : x;  // in this order NaN stays
  const FloatVector shifted = bounded + 0x1.8p+23f;  // the nearest integer now lies in the low mantissa bits
  const FloatVector f = bounded - (shifted - 0x1.8p+23f);
#endif
  // 2^f on [-1/2, 1/2]: polynomial of degree 6, interpolated at Chebyshev nodes.
  FloatVector p = broadcast(0x1.44138ap-13f);
  p = p * f + 0x1.5f0890p-10f;
  p = p * f + 0x1.3b2a54p-7f;
  p = p * f + 0x1.c6af6cp-5f;
  p = p * f + 0x1.ebfbe0p-3f;
  p = p * f + 0x1.62e430p-1f;
  p = p * f + 1.0f;
#if defined(__AVX512F__)
  return reinterpret_cast<FloatVector>(
      _mm512_maskz_scalef_ps(0xFFFF, reinterpret_cast<__m512>(p), reinterpret_cast<__m512>(whole)));
#else
  const IntVector power = (reinterpret_cast<IntVector>(shifted) + 127) << 23;  // n = -127 gives +0
  return p * reinterpret_cast<FloatVector>(power);
#endif
}

struct NoRegisters {};

// Words of one float.
struct F32Math {
  using Word = float;
  static constexpr bool kMatrixUnit = false;  // matmuls go through `Math::matmul` (tile_amx.h)
  using Registers = NoRegisters;              // state of a thread that computes with this arithmetic
  static constexpr int kStep = 1;             // elements per word along k
  static FloatVector multiply_add(FloatVector sum, Word a, const Word* b) { return sum + a * load_vector(b); }
};

#if defined(__AVX512BF16__)
// Words of two bf16. Multiplication is exact, sums are f32.
struct Bf16Math {
  using Word = std::uint32_t;
  static constexpr bool kMatrixUnit = false;
  using Registers = NoRegisters;
  static constexpr int kStep = 2;
  static FloatVector multiply_add(FloatVector sum, Word a, const Word* b) {
    const __m512i left = _mm512_set1_epi32(static_cast<int>(a));
    const __m512i right = _mm512_loadu_si512(b);
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(left), reinterpret_cast<__m512bh>(right));
  }
};
// The bf16 arithmetic of this build; F32Math where the CPU has none: bf16 is then widened when
// tiles are loaded.
using NativeBf16Math = Bf16Math;
#else
using NativeBf16Math = F32Math;
#endif

enum class Update {
  set,       // C = A B
  add,       // C += A B
  scale_add  // C = C * scale + A B, one scale per column
};
enum class Order { rows, columns };  // A's layout: [rows, k] or [k, rows]

namespace tile_detail {

#if defined(__AVX512F__) || defined(__aarch64__)
inline constexpr int kBlockVectors = 4;  // 6 x 4 sums in 32 registers
#else
inline constexpr int kBlockVectors = 2;  // 6 x 2 sums in 16 registers
#endif
inline constexpr int kBlockRows = 6;

template <typename Math, Update kUpdate, Order kOrder, int kRows, int kVectors>
inline void block(std::int64_t k, const typename Math::Word* a, std::int64_t lda,
                  const typename Math::Word* b, std::int64_t ldb, float* c, std::int64_t ldc,
                  const float* scale) {
  FloatVector sum[kRows][kVectors] = {};
  for (std::int64_t i = 0; i < k; ++i) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const auto word = kOrder == Order::rows ? a[r * lda + i] : a[i * lda + r];
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sum[r][v] = Math::multiply_add(sum[r][v], word, b + v * kLanes);
    }
    b += ldb;
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r, c += ldc) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      FloatVector result = sum[r][v];
      if constexpr (kUpdate == Update::add) result += load_vector(c + v * kLanes);
      if constexpr (kUpdate == Update::scale_add)
        result += load_vector(c + v * kLanes) * load_vector(scale + v * kLanes);
      store_vector(c + v * kLanes, result);
    }
  }
}

// call.operator()<value>(), where the value is one of 1 to kMost.
template <int kMost, typename Call>
inline void with_constant(std::int64_t value, const Call& call) {
  if (value == kMost) return call.template operator()<kMost>();
  if constexpr (kMost > 1) with_constant<kMost - 1>(value, call);
}

template <typename Math, Update kUpdate, Order kOrder, int kVectors>
inline void columns(std::int64_t rows, std::int64_t k, const typename Math::Word* a, std::int64_t lda,
                    const typename Math::Word* b, std::int64_t ldb, float* c, std::int64_t ldc,
                    const float* scale) {
  const std::int64_t step = kOrder == Order::rows ? lda : 1;
  for (; rows >= kBlockRows; rows -= kBlockRows) {
    block<Math, kUpdate, kOrder, kBlockRows, kVectors>(k, a, lda, b, ldb, c, ldc, scale);
    a += kBlockRows * step;
    c += kBlockRows * ldc;
  }
  with_constant<kBlockRows - 1>(rows, [&]<int kRows>() {
    block<Math, kUpdate, kOrder, kRows, kVectors>(k, a, lda, b, ldb, c, ldc, scale);
  });
}

}  // namespace tile_detail

// C[rows, vectors * kLanes] (kUpdate) A[rows, k words] B[k words, vectors * kLanes]. Leading dimensions count
// words of A and B and floats of C. Each element of A B is one chain of multiply-adds in order of k, whatever
// the blocking; on a matrix unit a chain of its instructions, which begins with C where that is added to.
template <typename Math, Update kUpdate, Order kOrder>
void tile_matmul(std::int64_t rows, std::int64_t vectors, std::int64_t k, const typename Math::Word* a,
                 std::int64_t lda, const typename Math::Word* b, std::int64_t ldb, float* c, std::int64_t ldc,
                 const float* scale = nullptr) {
  using namespace tile_detail;
  if constexpr (Math::kMatrixUnit) {
    static_assert(kOrder == Order::rows, "the matrix unit reads A by rows");
    return Math::template matmul<kUpdate>(rows, vectors, k, a, lda, b, ldb, c, ldc, scale);
  }
  while (vectors > 0) {
    const std::int64_t taken = vectors < kBlockVectors ? vectors : kBlockVectors;
    with_constant<kBlockVectors>(taken, [&]<int kVectors>() {
      columns<Math, kUpdate, kOrder, kVectors>(rows, k, a, lda, b, ldb, c, ldc, scale);
    });
    vectors -= taken;
    b += taken * kLanes;
    c += taken * kLanes;
    if (kUpdate == Update::scale_add) scale += taken * kLanes;
  }
}

}  // namespace mulligan::cpu
