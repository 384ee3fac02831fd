#include "plugins/backends/cpu/math/spread_rows.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace mulligan::cpu {
namespace {

constexpr std::int64_t kRows = 1024;

constexpr std::int64_t floats(std::int64_t count) {
  return count * static_cast<std::int64_t>(sizeof(float));
}

// Copies are needed for rows along k only, and pay from so many products of each element on. Sums of pieces are kept in
// c, which has to be f32.
bool spreads(const GemmShape& shape, std::int64_t step, std::int64_t stride, std::int64_t uses) {
  return !shape.ab_bf16 && !shape.c_bf16 && step == 1 && rows_conflict(stride) && uses >= 64;
}

struct Operand {
  bool spread;
  std::int64_t columns, stride;  // of a row; elements from the one to the next

  std::int64_t copy_bytes() const { return spread ? kRows * floats(spread_stride(columns)) : 0; }
  // `rows` rows from row k on, as the product reads them: where they lie, or their copy.
  const std::byte* at(const void* operand, std::int64_t k, std::int64_t rows, std::byte* copy) const {
    const std::byte* from = static_cast<const std::byte*>(operand) + floats(k * stride);
    if (!spread) return from;
    for (std::int64_t row = 0; row < rows; ++row) {
      std::memcpy(copy + row * floats(spread_stride(columns)), from + row * floats(stride),
                  static_cast<std::size_t>(floats(columns)));
    }
    return copy;
  }
};

class SpreadGemm final : public Gemm {
 public:
  SpreadGemm(const GemmShape& shape, int slots)
      : k_(shape.k),
        a_{spreads_a(shape), shape.m, shape.a_column},
        b_{spreads_b(shape), shape.n, shape.b_row} {
    GemmShape piece = shape;
    if (a_.spread) piece.a_column = spread_stride(shape.m);
    if (b_.spread) piece.b_row = spread_stride(shape.n);
    const auto make = [&](Part part, std::int64_t k, float beta) {
      piece.k = k;
      piece.beta = beta;
      if (k == 0) return;
      pieces_[part] = make_gemm(piece, slots);
      made_ = made_ && pieces_[part];
    };
    make(kFirst, std::min(k_, kRows), shape.beta);
    make(kNext, k_ / kRows > 1 ? kRows : 0, 1.0F);
    make(kLast, k_ > kRows ? k_ % kRows : 0, 1.0F);
    for (const auto& made : pieces_) {
      if (made) scratch_ = std::max(scratch_, (made->scratch_bytes() + 255) / 256 * 256);
    }
  }

  bool made() const { return made_; }
  std::size_t scratch_bytes() const override {
    return scratch_ + static_cast<std::size_t>(a_.copy_bytes() + b_.copy_bytes());
  }
  bool fast() const override { return pieces_[kFirst]->fast(); }

  bool run(int slot, const void* a, const void* b, void* c, void* scratch) noexcept override {
    std::byte* a_copy = static_cast<std::byte*>(scratch) + scratch_;
    std::byte* b_copy = a_copy + a_.copy_bytes();
    for (std::int64_t k = 0; k < k_; k += kRows) {
      const std::int64_t rows = std::min(kRows, k_ - k);
      const Part part = k == 0 ? kFirst : rows == kRows ? kNext : kLast;
      if (!pieces_[part]->run(slot, a_.at(a, k, rows, a_copy), b_.at(b, k, rows, b_copy), c, scratch))
        return false;
    }
    return true;
  }

 private:
  enum Part { kFirst, kNext, kLast, kParts };

  std::int64_t k_;
  Operand a_, b_;
  std::array<std::unique_ptr<Gemm>, kParts> pieces_;
  bool made_ = true;
  std::size_t scratch_ = 0;  // of the pieces; the copies lie behind it
};

}  // namespace

bool spreads_a(const GemmShape& shape) {
  return spreads(shape, shape.a_row, shape.a_column, shape.n);
}

bool spreads_b(const GemmShape& shape) {
  return spreads(shape, shape.b_column, shape.b_row, shape.m);
}

std::unique_ptr<Gemm> make_spread_gemm(const GemmShape& shape, int slots) {
  auto gemm = std::make_unique<SpreadGemm>(shape, slots);
  if (!gemm->made()) return nullptr;
  return gemm;
}

}  // namespace mulligan::cpu
