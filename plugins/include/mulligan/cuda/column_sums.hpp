// Host side of columns.cuh.
#pragma once

#include <mulligan/cuda_kernel.hpp>

#include <algorithm>

#pragma GCC visibility push(hidden)

namespace mulligan::sdk {

// A sum over rows that goes to the argument `sum` of a call: a kernel writes a row of partial sums for each
// of `parts` parts of the rows, add() launches what adds them up. Where the argument is absent: null, and
// nothing.
class ColumnSums {
 public:
  ColumnSums(CudaCall& call, std::uint32_t sum, std::int64_t parts)
      : sum_(sum),
        parts_(parts),
        partial_(call.has(sum) ? call.floats(parts * call.size(sum)) : call.null()) {}

  // None: a place among several that is not needed.
  explicit ColumnSums(const CudaCall& call) : sum_(kNone), parts_(0), partial_(call.null()) {}

  // [parts, elements of the argument]
  const CudaArgument& partial() const { return partial_; }

  // `adder`: MLG_INSTANCE(add_column_sums).
  template <typename Instance>
  void add(CudaCall& call, const Instance& adder) const {
    if (!wanted(call)) return;
    call.launch(adder, {blocks(call), 1, 1}, {threads(parts_), 1, 1}, partial_, call.tensor(sum_),
                static_cast<int>(parts_), call.size(sum_));
  }

  // Four sums in one launch. `adder`: MLG_INSTANCE(add_four_column_sums).
  template <typename Instance>
  static void add(CudaCall& call, const Instance& adder, const ColumnSums (&s)[4]) {
    std::int64_t all_blocks = 0, parts = 0;
    for (const ColumnSums& sum : s) {
      all_blocks += sum.blocks(call);
      parts = std::max(parts, sum.parts_);
    }
    const auto columns = [&](int i) -> std::int64_t { return s[i].wanted(call) ? call.size(s[i].sum_) : 0; };
    const auto out = [&](int i) { return s[i].sum_ == kNone ? call.null() : call.tensor(s[i].sum_); };
    const auto count = [&](int i) { return static_cast<int>(s[i].parts_); };
    call.launch(adder, {all_blocks, 1, 1}, {threads(parts), 1, 1}, s[0].partial_, out(0), count(0),
                columns(0), s[1].partial_, out(1), count(1), columns(1), s[2].partial_, out(2), count(2),
                columns(2), s[3].partial_, out(3), count(3), columns(3));
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  bool wanted(const CudaCall& call) const { return sum_ != kNone && call.has(sum_); }
  std::int64_t blocks(const CudaCall& call) const { return wanted(call) ? (call.size(sum_) + 31) / 32 : 0; }
  // Warps of a block take a few parts each.
  static std::uint32_t threads(std::int64_t parts) {
    constexpr std::int64_t kMostWarps = 32, kFewParts = 4;
    return static_cast<std::uint32_t>(
        32 * std::clamp<std::int64_t>((parts + kFewParts - 1) / kFewParts, 1, kMostWarps));
  }

  std::uint32_t sum_;
  std::int64_t parts_;
  CudaArgument partial_;
};

}  // namespace mulligan::sdk

#pragma GCC visibility pop
