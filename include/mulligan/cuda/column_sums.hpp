// Host side of columns.cuh.
#pragma once

#include <mulligan/cuda_kernel.hpp>

#include <algorithm>
#include <tuple>
#include <utility>

#pragma GCC visibility push(hidden)

namespace mulligan::sdk {

// A sum over rows for the argument `sum` of a call. A kernel writes a row of partial sums for each of `parts` parts of the
// rows. add() launches the kernel that adds them up; without the argument it launches nothing.
class ColumnSums {
 public:
  ColumnSums(CudaCall& call, std::uint32_t sum, std::int64_t parts)
      : sum_(sum),
        parts_(parts),
        partial_(call.has(sum) ? call.floats(parts * call.size(sum)) : call.null()) {}

  // [parts, elements of the argument]
  const CudaArgument& partial() const { return partial_; }

  // `adder`: MLG_INSTANCE(add_column_sums).
  template <typename Instance>
  void add(CudaCall& call, const Instance& adder) const {
    if (!call.has(sum_)) return;
    call.launch(adder, {blocks(call), 1, 1}, {threads(parts_), 1, 1}, partial_, call.tensor(sum_),
                static_cast<int>(parts_), call.size(sum_));
  }

  // N sums in one launch. `adder`: MLG_INSTANCE(add_four_column_sums), or a function like it for N sums.
  template <typename Instance, std::size_t N>
  static void add(CudaCall& call, const Instance& adder, const ColumnSums (&s)[N]) {
    std::int64_t all_blocks = 0, parts = 0;
    for (const ColumnSums& sum : s) {
      all_blocks += sum.blocks(call);
      parts = std::max(parts, sum.parts_);
    }
    const auto launch = [&](const auto&... arguments) {
      call.launch(adder, {all_blocks, 1, 1}, {threads(parts), 1, 1}, arguments...);
    };
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      std::apply(launch, std::tuple_cat(s[I].arguments(call)...));
    }
    (std::make_index_sequence<N>());
  }

 private:
  std::int64_t blocks(const CudaCall& call) const { return call.has(sum_) ? (call.size(sum_) + 31) / 32 : 0; }
  // partial, out, parts, columns
  std::tuple<CudaArgument, CudaArgument, int, std::int64_t> arguments(const CudaCall& call) const {
    return {partial_, call.tensor(sum_), static_cast<int>(parts_), call.has(sum_) ? call.size(sum_) : 0};
  }
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
