#include "plugins/backends/cpu/math/packed_gemm.h"

#include <algorithm>
#include <cstring>

#include "plugins/backends/cpu/math/tile_pack.h"

namespace mulligan::cpu {
namespace {

// A block of c in registers: kRows x kColumns sums. An operand is packed into panels as wide as the block, [k, width], the
// last one filled with zeros. A piece of kInner along k of b's panel stays in the first-level cache while all panels of a
// meet it; b is packed kGroup columns at a time, so that whole cache lines of its rows are read.
constexpr std::int64_t kRows = tile_detail::kBlockRows, kColumns = tile_detail::kBlockVectors * kLanes;
constexpr std::int64_t kInner = 256, kGroup = 64, kAhead = 8;
static_assert(kGroup % kColumns == 0 && kInner % kLanes == 0);

// An operand, seen as [inner, outer]: `along` elements from one to the next along k, `across` along m or n.
struct Operand {
  const float* data;
  std::int64_t along, across;
};

// One full panel of rows that are contiguous along k, by transposition. Writes up to kLanes elements beyond the panel.
template <std::int64_t kWidth>
void pack_transposed(Operand from, std::int64_t inner, float* to) {
  std::int64_t k = 0;
  for (; k + kLanes <= inner; k += kLanes) {
#pragma GCC unroll 8
    for (std::int64_t at = 0; at < kWidth; at += kLanes) {
      FloatVector block[kLanes];
#pragma GCC unroll 16
      for (std::int64_t i = 0; i < kLanes; ++i)
        block[i] = at + i < kWidth ? load_vector(from.data + (at + i) * from.across + k) : FloatVector{};
      tile_detail::transpose_stage<kLanes / 2>(block);
      // What is beyond the width is written over by the row that follows.
#pragma GCC unroll 16
      for (std::int64_t i = 0; i < kLanes; ++i) store_vector(to + (k + i) * kWidth + at, block[i]);
    }
  }
  for (; k < inner; ++k) {
    for (std::int64_t i = 0; i < kWidth; ++i) to[k * kWidth + i] = from.data[i * from.across + k];
  }
}

// Panels [outer / kWidth][inner, kWidth] of `from`, rounded up, each inner x kWidth elements behind the other.
template <std::int64_t kWidth>
void pack(Operand from, std::int64_t inner, std::int64_t outer, float* to) {
  const std::int64_t full = outer / kWidth, rest = outer % kWidth;
  if (from.along == 1) {
    for (std::int64_t panel = 0; panel < full; ++panel) {
      pack_transposed<kWidth>({from.data + panel * kWidth * from.across, 1, from.across}, inner,
                              to + panel * kWidth * inner);
    }
  } else {
    for (std::int64_t k = 0; k < inner; ++k) {
      const float* row = from.data + k * from.along;
      // Rows lie on pages of their own, where the processor does not see their order.
      const float* ahead = from.data + std::min(k + kAhead, inner - 1) * from.along;
      for (std::int64_t at = 0; at < outer; at += 16) __builtin_prefetch(ahead + at);
      for (std::int64_t panel = 0; panel < full; ++panel)
        std::memcpy(to + (panel * inner + k) * kWidth, row + panel * kWidth, kWidth * sizeof(float));
    }
  }
  if (rest == 0) return;
  float* last = to + full * kWidth * inner;
  for (std::int64_t k = 0; k < inner; ++k, last += kWidth) {
    for (std::int64_t i = 0; i < kWidth; ++i)
      last[i] = i < rest ? from.data[k * from.along + (full * kWidth + i) * from.across] : 0.0F;
  }
}

// c = alpha a b + beta c for a block of full size; c is not read where beta is 0.
void block(std::int64_t inner, const float* a, const float* b, float alpha, float beta, float* c,
           std::int64_t c_row) {
  constexpr int kVectors = tile_detail::kBlockVectors;
  FloatVector sum[kRows][kVectors] = {};
#pragma GCC unroll 8
  for (std::int64_t i = 0; i < kRows; ++i) {  // a block's row lies in one cache line or two
    __builtin_prefetch(c + i * c_row);
    __builtin_prefetch(c + i * c_row + kColumns - 1);
  }
#pragma GCC unroll 4
  for (std::int64_t k = 0; k < inner; ++k, a += kRows, b += kColumns) {
#pragma GCC unroll 8
    for (std::int64_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sum[i][v] = F32Math::multiply_add(sum[i][v], a[i], b + v * kLanes);
    }
  }
#pragma GCC unroll 8
  for (std::int64_t i = 0; i < kRows; ++i, c += c_row) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      FloatVector result = alpha * sum[i][v];
      if (beta != 0.0F) result += beta * load_vector(c + v * kLanes);
      store_vector(c + v * kLanes, result);
    }
  }
}

// The same for a block at an edge: rows x columns of it are in c.
void edge_block(std::int64_t inner, const float* a, const float* b, float alpha, float beta, float* c,
                std::int64_t c_row, std::int64_t rows, std::int64_t columns) {
  float whole[kRows * kColumns] = {};
  const auto bytes = static_cast<std::size_t>(columns) * sizeof(float);
  if (beta != 0.0F) {
    for (std::int64_t i = 0; i < rows; ++i) std::memcpy(whole + i * kColumns, c + i * c_row, bytes);
  }
  block(inner, a, b, alpha, beta, whole, kColumns);
  for (std::int64_t i = 0; i < rows; ++i) std::memcpy(c + i * c_row, whole + i * kColumns, bytes);
}

class PackedGemm final : public Gemm {
 public:
  explicit PackedGemm(const GemmShape& shape) : shape_(shape) {}

  std::size_t scratch_bytes() const override {
    return static_cast<std::size_t>(a_floats() + b_floats()) * sizeof(float);
  }
  bool fast() const override { return true; }

  bool run(int /*slot*/, const void* a, const void* b, void* c, void* scratch) noexcept override {
    const auto* left = static_cast<const float*>(a);
    const auto* right = static_cast<const float*>(b);
    auto* a_panels = static_cast<float*>(scratch);
    float* b_panels = a_panels + a_floats();
    for (std::int64_t k = 0; k < shape_.k; k += kInner) {
      const std::int64_t inner = std::min(kInner, shape_.k - k);
      const float beta = k == 0 ? shape_.beta : 1.0F;
      pack<kRows>({left + k * shape_.a_column, shape_.a_column, shape_.a_row}, inner, shape_.m, a_panels);
      for (std::int64_t n = 0; n < shape_.n; n += kGroup) {
        const std::int64_t columns = std::min(kGroup, shape_.n - n);
        const float* from = right + k * shape_.b_row + n * shape_.b_column;
        pack<kColumns>({from, shape_.b_row, shape_.b_column}, inner, columns, b_panels);
        multiply(inner, n, n + columns, a_panels, b_panels, beta, static_cast<float*>(c));
      }
    }
    return true;
  }

 private:
  // Of all panels, and what pack_transposed() writes beyond the last one; whole cache lines.
  std::int64_t a_floats() const { return round_up(round_up(shape_.m, kRows) * kInner + kLanes, 16); }
  static std::int64_t b_floats() { return kGroup * kInner; }

  // Columns [n, end) of c, whose panels of b start at `b`.
  void multiply(std::int64_t inner, std::int64_t n, std::int64_t end, const float* a, const float* b,
                float beta, float* c) const {
    for (; n < end; n += kColumns, b += kColumns * inner) {
      const std::int64_t unwanted =
          std::max<std::int64_t>(0, n - shape_.diagonal);  // rows whose first wanted column is left of n
      for (std::int64_t m = unwanted / kRows * kRows; m < shape_.m; m += kRows) {
        float* at = c + m * shape_.c_row + n;
        if (m + kRows <= shape_.m && n + kColumns <= end) {
          block(inner, a + m * inner, b, shape_.alpha, beta, at, shape_.c_row);
        } else {
          edge_block(inner, a + m * inner, b, shape_.alpha, beta, at, shape_.c_row,
                     std::min(kRows, shape_.m - m), std::min(kColumns, end - n));
        }
      }
    }
  }

  GemmShape shape_;
};

}  // namespace

bool packs(const GemmShape& shape) {
  return !shape.ab_bf16 && !shape.c_bf16 && shape.m >= 64 && shape.n >= 64;
}

std::unique_ptr<Gemm> make_packed_gemm(const GemmShape& shape) {
  return std::make_unique<PackedGemm>(shape);
}

}  // namespace mulligan::cpu
