// Host side of rows.cuh: how the rows of a [rows, width] tensor fall to groups of threads.
#pragma once

#include <mulligan/cuda/rows.cuh>
#include <mulligan/cuda_kernel.hpp>

#pragma GCC visibility push(hidden)

namespace mulligan::sdk {

// What a kernel asks of its plan.
struct RowNeeds {
  std::int64_t values = 2;  // RowValues that a thread keeps at a time, temporary ones counted
  std::int64_t most_groups =
      0;  // 0: a group takes one row; otherwise rows are shared out evenly, >= 8 to a group
  std::int64_t most_blocks = 0;  // the same, counted in blocks
  std::int64_t few = kMostHeld;  // accesses per thread beyond which a row gets more threads
};

struct RowPlan {
  std::int64_t rows = 0, groups = 0;  // groups: those that have rows
  int rows_per_group = 1;
  std::int64_t blocks = 0;
  std::uint32_t threads = 0;  // of a block

  // Declares the constants of rows.cuh. `pack`: elements per access.
  RowPlan(CudaCall& call, std::int64_t rows, std::int64_t width, int pack, const RowNeeds& needs)
      : rows(rows) {
    const std::int64_t accesses = (width + pack - 1) / pack;
    std::int64_t group = 32;
    while (group < 1024 && accesses > group * most_held(group, pack, needs) &&
           2 * most_held(2 * group, pack, needs) > most_held(group, pack, needs)) {
      group *= 2;
    }
    const std::int64_t most = std::max<std::int64_t>(most_held(group, pack, needs), 1);
    const std::int64_t held = std::clamp<std::int64_t>((accesses + group - 1) / group, 1, most);
    threads = block_threads(group);
    const std::int64_t groups_per_block = threads / group;
    const std::int64_t most_groups = std::max(needs.most_groups, needs.most_blocks * groups_per_block);
    if (most_groups > 0)
      rows_per_group = static_cast<int>(std::max<std::int64_t>(8, (rows + most_groups - 1) / most_groups));
    groups = (rows + rows_per_group - 1) / rows_per_group;
    blocks = (groups + groups_per_block - 1) / groups_per_block;
    call.constant("width", width);
    call.constant("row_threads", group);
    call.constant("row_block", threads);
    call.constant("held", held);
    call.constant("slices", std::max<std::int64_t>((accesses + group * held - 1) / (group * held), 1));
  }

  std::array<std::int64_t, 3> grid() const { return {blocks, 1, 1}; }
  std::array<std::uint32_t, 3> block() const { return {threads, 1, 1}; }

 private:
  static std::uint32_t block_threads(std::int64_t group) {
    return static_cast<std::uint32_t>(group == 32 ? 128 : group);
  }
  // Accesses that a thread may hold without spilling. A block's threads share 65536 registers, and addresses and
  // similar values take some of them.
  static std::int64_t most_held(std::int64_t group, int pack, const RowNeeds& needs) {
    constexpr std::int64_t kRegisters = 65536, kMostRegisters = 255, kOtherRegisters = 56;
    const std::int64_t registers = std::min(kRegisters / block_threads(group), kMostRegisters);
    return std::min(needs.few, (registers - kOtherRegisters) / (pack * needs.values));
  }
};

// Rows and width of an argument: its last axis, and all before it.
inline std::int64_t row_width(const Launch& call, std::uint32_t argument) {
  const mlg_tensor& t = call.tensor(argument);
  return t.shape[t.rank - 1];
}
inline std::int64_t row_count(const Launch& call, std::uint32_t argument) {
  const std::int64_t width = row_width(call, argument);
  return width == 0 ? 0 : call.size(argument) / width;
}

// Calls body.template operator()<T, N>(): T the compute dtype of `argument`, N the elements per access that
// `extent` and the addresses of `arguments` allow, a full 16 bytes or 1.
template <typename Body>
void dispatch_rows(const CudaCall& call, std::uint32_t argument, std::int64_t extent,
                   std::initializer_list<std::uint32_t> arguments, Body&& body) {
  dispatch_cuda(call.dtype(argument), [&]<typename T>() {
    if (call.allows_packs(extent, kPack<T>, arguments)) {
      body.template operator()<T, kPack<T>>();
    } else {
      body.template operator()<T, 1>();
    }
  });
}

// The same over the rows of `argument`, with their plan: body.template operator()<T, N>(rows).
template <typename Body>
void plan_rows(CudaCall& call, std::uint32_t argument, std::initializer_list<std::uint32_t> arguments,
               const RowNeeds& needs, Body&& body) {
  const std::int64_t width = row_width(call, argument);
  dispatch_rows(call, argument, width, arguments, [&]<typename T, int N>() {
    body.template operator()<T, N>(RowPlan(call, row_count(call, argument), width, N, needs));
  });
}

// Groups among which kernels share out rows when they sum over them: enough to fill a large GPU, independent
// of it.
inline constexpr std::int64_t kPieces = 1024;

}  // namespace mulligan::sdk

#pragma GCC visibility pop
