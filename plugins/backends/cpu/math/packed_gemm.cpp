#include "plugins/backends/cpu/math/packed_gemm.h"

#include <mulligan/kernel.hpp>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "plugins/backends/cpu/math/tile_pack.h"

namespace mulligan::cpu {
namespace {

// A block of c in registers: kRows x kColumns sums. An operand is packed into panels as wide as the block, [k, width] words
// (tile_math.h), the last one filled with zeros. A piece of kInner words along k of b's panel stays in the first-level cache
// while all panels of a meet it; b is packed kGroup columns at a time, so that whole cache lines of its rows are read.
#if defined(__AVX512F__)
constexpr std::int64_t kRows = 12, kVectors = 2;  // narrow: less of a block lies beyond a diagonal
#else
constexpr std::int64_t kRows = tile_detail::kBlockRows, kVectors = tile_detail::kBlockVectors;
#endif
constexpr std::int64_t kColumns = kVectors * kLanes, kInner = 256, kGroup = 64, kAhead = 8;
static_assert(kGroup % kColumns == 0 && kInner % kLanes == 0);

// An operand, seen as [inner, outer]: `along` elements from one to the next along k, `across` along m or n. Words of F32Math
// widen elements of bf16.
template <typename Math, typename T>
struct Operand {
  const T* data;
  std::int64_t along, across;

  // The word at k = kStep * word.
  typename Math::Word word(std::int64_t word, std::int64_t outer) const {
    const T* at = data + word * Math::kStep * along + outer * across;
    if constexpr (Math::kStep == 1) return *at;
    if constexpr (Math::kStep == 2) return static_cast<std::uint32_t>(at[along].bits) << 16 | at->bits;
  }
};

// kLanes words that are contiguous along k.
template <typename Math, typename T>
IntVector load_words(const T* from) {
  IntVector words;
  if constexpr (sizeof(T) * Math::kStep == sizeof words[0]) {
    std::memcpy(&words, from, sizeof words);
  } else {
    std::uint16_t halves __attribute__((vector_size(kVectorBytes / 2)));
    std::memcpy(&halves, from, sizeof halves);
    words = __builtin_convertvector(halves, IntVector) << 16;
  }
  return words;
}

// One full panel of rows that are contiguous along k, by transposition. Writes up to kLanes words beyond the panel.
template <typename Math, std::int64_t kWidth, typename T>
void pack_transposed(const Operand<Math, T>& from, std::int64_t words, typename Math::Word* to) {
  std::int64_t k = 0;
  for (; k + kLanes <= words; k += kLanes) {
#pragma GCC unroll 8
    for (std::int64_t at = 0; at < kWidth; at += kLanes) {
      IntVector block[kLanes];
#pragma GCC unroll 16
      for (std::int64_t i = 0; i < kLanes; ++i) {
        block[i] = IntVector{};
        if (at + i < kWidth)
          block[i] = load_words<Math>(from.data + (at + i) * from.across + k * Math::kStep);
      }
      tile_detail::transpose_stage<kLanes / 2>(block);
      // What is beyond the width is written over by the row that follows.
#pragma GCC unroll 16
      for (std::int64_t i = 0; i < kLanes; ++i)
        std::memcpy(to + (k + i) * kWidth + at, &block[i], sizeof(IntVector));
    }
  }
  for (; k < words; ++k) {
    for (std::int64_t i = 0; i < kWidth; ++i) to[k * kWidth + i] = from.word(k, i);
  }
}

// Panels [outer / kWidth][words, kWidth] of `from`, rounded up, each words x kWidth words after the other.
template <typename Math, std::int64_t kWidth, typename T>
void pack(const Operand<Math, T>& from, std::int64_t words, std::int64_t outer, typename Math::Word* to) {
  const std::int64_t full = outer / kWidth, rest = outer % kWidth;
  if (from.along == 1) {
    for (std::int64_t panel = 0; panel < full; ++panel) {
      pack_transposed<Math, kWidth, T>({from.data + panel * kWidth * from.across, 1, from.across}, words,
                                       to + panel * kWidth * words);
    }
  } else {
    for (std::int64_t k = 0; k < words; ++k) {
      // Rows lie on pages of their own, where the CPU does not see their order.
      const auto* ahead = from.data + std::min(k + kAhead, words - 1) * Math::kStep * from.along;
      for (std::int64_t at = 0; at < outer; at += 16) __builtin_prefetch(ahead + at);
      for (std::int64_t panel = 0; panel < full; ++panel) {
        typename Math::Word* row = to + (panel * words + k) * kWidth;
        for (std::int64_t i = 0; i < kWidth; ++i) row[i] = from.word(k, panel * kWidth + i);
      }
    }
  }
  if (rest == 0) return;
  typename Math::Word* last = to + full * kWidth * words;
  for (std::int64_t k = 0; k < words; ++k, last += kWidth) {
    for (std::int64_t i = 0; i < kWidth; ++i)
      last[i] = i < rest ? from.word(k, full * kWidth + i) : typename Math::Word{};
  }
}

// c = alpha a b + beta c for a block of full size; c is not read where beta is 0.
template <typename Math>
void block(std::int64_t words, const typename Math::Word* a, const typename Math::Word* b, float alpha,
           float beta, float* c, std::int64_t c_row) {
  FloatVector sum[kRows][kVectors] = {};
#pragma GCC unroll 16
  for (std::int64_t i = 0; i < kRows; ++i) {  // a block's row lies in one cache line more than vectors fill
    for (std::int64_t v = 0; v < kVectors; ++v) __builtin_prefetch(c + i * c_row + v * kLanes);
    __builtin_prefetch(c + i * c_row + kColumns - 1);
  }
#pragma GCC unroll 4
  for (std::int64_t k = 0; k < words; ++k, a += kRows, b += kColumns) {
#pragma GCC unroll 16
    for (std::int64_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
      for (std::int64_t v = 0; v < kVectors; ++v)
        sum[i][v] = Math::multiply_add(sum[i][v], a[i], b + v * kLanes);
    }
  }
#pragma GCC unroll 16
  for (std::int64_t i = 0; i < kRows; ++i, c += c_row) {
#pragma GCC unroll 4
    for (std::int64_t v = 0; v < kVectors; ++v) {
      FloatVector result = alpha * sum[i][v];
      if (beta != 0.0F) result += beta * load_vector(c + v * kLanes);
      store_vector(c + v * kLanes, result);
    }
  }
}

// In: the type of a and b. Out: that of c.
template <typename Math, typename In, typename Out>
class PackedGemm final : public Gemm {
 public:
  explicit PackedGemm(const GemmShape& shape) : shape_(shape) {}

  std::size_t scratch_bytes() const override {
    return static_cast<std::size_t>(a_words() + b_words() + sum_floats()) * sizeof(Word);
  }
  bool fast() const override { return true; }

  bool run(int /*slot*/, const void* a, const void* b, void* c, void* scratch) noexcept override {
    const auto* left = static_cast<const In*>(a);
    const auto* right = static_cast<const In*>(b);
    auto* a_panels = static_cast<Word*>(scratch);
    Word* b_panels = a_panels + a_words();
    auto* sums = reinterpret_cast<float*>(b_panels + b_words());
    const std::int64_t piece = kInner * Math::kStep;
    for (std::int64_t k = 0; k < shape_.k; k += piece) {
      const std::int64_t words = std::min(piece, shape_.k - k) / Math::kStep;
      const Place place{k == 0, k + piece >= shape_.k};
      pack<Math, kRows, In>({left + k * shape_.a_column, shape_.a_column, shape_.a_row}, words, shape_.m,
                            a_panels);
      for (std::int64_t n = 0; n < shape_.n; n += kGroup) {
        const std::int64_t columns = std::min(kGroup, shape_.n - n);
        const In* from = right + k * shape_.b_row + n * shape_.b_column;
        pack<Math, kColumns, In>({from, shape_.b_row, shape_.b_column}, words, columns, b_panels);
        multiply(words, n, n + columns, a_panels, b_panels, place, static_cast<Out*>(c), sums);
      }
    }
    return true;
  }

 private:
  using Word = typename Math::Word;
  static constexpr bool kWide = std::is_same_v<Out, float>;  // c holds sums as they are
  struct Place {
    bool first, last;  // of the pieces along k
  };

  // Of all panels, and what pack_transposed() writes beyond the last one; whole cache lines.
  std::int64_t a_words() const { return round_up(round_up(shape_.m, kRows) * kInner + kLanes, 16); }
  static std::int64_t b_words() { return kGroup * kInner; }
  // Sums of the pieces before the last, whole blocks, where c would round them.
  std::int64_t sum_row() const { return round_up(shape_.n, kColumns); }
  std::int64_t sum_floats() const {
    return kWide || shape_.k <= kInner * Math::kStep ? 0 : round_up(shape_.m, kRows) * sum_row();
  }

  // Columns [n, end) of c, whose panels of b start at `b`.
  void multiply(std::int64_t words, std::int64_t n, std::int64_t end, const Word* a, const Word* b,
                const Place& place, Out* c, float* sums) const {
    for (; n < end; n += kColumns, b += kColumns * words) {
      const std::int64_t unwanted =
          std::max<std::int64_t>(0, n - shape_.diagonal);  // rows whose first wanted column is left of n
      for (std::int64_t m = unwanted / kRows * kRows; m < shape_.m; m += kRows) {
        const std::int64_t rows = std::min(kRows, shape_.m - m), columns = std::min(kColumns, end - n);
        const Word* panel = a + m * words;
        Out* at = c + m * shape_.c_row + n;
        if constexpr (kWide) {
          const float beta = place.first ? shape_.beta : 1.0F;
          if (rows == kRows && columns == kColumns) {
            block<Math>(words, panel, b, shape_.alpha, beta, at, shape_.c_row);
          } else {
            part_of_block(words, panel, b, shape_.alpha, beta, at, rows, columns);
          }
        } else if (!place.last) {
          block<Math>(words, panel, b, 1.0F, place.first ? 0.0F : 1.0F, sums + m * sum_row() + n, sum_row());
        } else {
          round_block(words, panel, b, place.first ? nullptr : sums + m * sum_row() + n, at, rows, columns);
        }
      }
    }
  }

  // As block(), where only rows x columns of it are in c.
  void part_of_block(std::int64_t words, const Word* a, const Word* b, float alpha, float beta, float* c,
                     std::int64_t rows, std::int64_t columns) const {
    float whole[kRows * kColumns] = {};
    const auto bytes = static_cast<std::size_t>(columns) * sizeof(float);
    if (beta != 0.0F) {
      for (std::int64_t i = 0; i < rows; ++i) std::memcpy(whole + i * kColumns, c + i * shape_.c_row, bytes);
    }
    block<Math>(words, a, b, alpha, beta, whole, kColumns);
    for (std::int64_t i = 0; i < rows; ++i) std::memcpy(c + i * shape_.c_row, whole + i * kColumns, bytes);
  }

  // The last piece of a block whose result is rounded; `before` holds the sums of the others, if there are any.
  void round_block(std::int64_t words, const Word* a, const Word* b, const float* before, sdk::bfloat16* c,
                   std::int64_t rows, std::int64_t columns) const {
    float whole[kRows * kColumns];
    for (std::int64_t i = 0; before && i < kRows; ++i)
      std::memcpy(whole + i * kColumns, before + i * sum_row(), kColumns * sizeof(float));
    block<Math>(words, a, b, 1.0F, before ? 1.0F : 0.0F, whole, kColumns);
    for (std::int64_t i = 0; i < rows; ++i) {
      sdk::bfloat16* to = c + i * shape_.c_row;
      const float* sum = whole + i * kColumns;
      if (shape_.beta == 0.0F) {
        for (std::int64_t j = 0; j < columns; ++j) to[j] = sdk::bfloat16(shape_.alpha * sum[j]);
      } else {
        for (std::int64_t j = 0; j < columns; ++j)
          to[j] = sdk::bfloat16(shape_.alpha * sum[j] + shape_.beta * to[j]);
      }
    }
  }

  GemmShape shape_;
};

}  // namespace

bool packs(const GemmShape& shape) {
  if (shape.ab_bf16 && !bf16_matmuls_pay()) return true;  // otherwise all of a and b is widened
  if (shape.m < 64 || shape.n < 64) return false;
  if (!shape.ab_bf16) return !shape.c_bf16;
#if defined(__AVX512BF16__)
  return shape.c_bf16 && shape.k % 2 == 0;
#else
  return false;
#endif
}

std::unique_ptr<Gemm> make_packed_gemm(const GemmShape& shape) {
  using sdk::bfloat16;
  if (!shape.ab_bf16) return std::make_unique<PackedGemm<F32Math, float, float>>(shape);
#if defined(__AVX512BF16__)
  if (bf16_matmuls_pay()) return std::make_unique<PackedGemm<Bf16Math, bfloat16, bfloat16>>(shape);
#endif
  if (shape.c_bf16) return std::make_unique<PackedGemm<F32Math, bfloat16, bfloat16>>(shape);
  return std::make_unique<PackedGemm<F32Math, bfloat16, float>>(shape);
}

}  // namespace mulligan::cpu
