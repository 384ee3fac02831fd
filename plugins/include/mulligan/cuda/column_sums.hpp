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

  // [parts, elements of the argument]
  const CudaArgument& partial() const { return partial_; }

  // `adder`: MLG_INSTANCE(add_column_sums). Warps of a block take a few parts each.
  template <typename Instance>
  void add(CudaCall& call, const Instance& adder) const {
    if (!call.has(sum_)) return;
    constexpr std::int64_t kMostWarps = 32, kFewParts = 4;
    const std::int64_t warps = std::clamp<std::int64_t>((parts_ + kFewParts - 1) / kFewParts, 1, kMostWarps);
    const std::int64_t columns = call.size(sum_);
    call.launch(adder, {(columns + 31) / 32, 1, 1}, {static_cast<std::uint32_t>(32 * warps), 1, 1}, partial_,
                call.tensor(sum_), static_cast<int>(parts_), columns);
  }

 private:
  std::uint32_t sum_;
  std::int64_t parts_;
  CudaArgument partial_;
};

}  // namespace mulligan::sdk

#pragma GCC visibility pop
