// Host side of heads.cuh: how heads fall to groups of lanes.
#pragma once

#include <mulligan/cuda/heads.cuh>
#include <mulligan/cuda/row_plan.hpp>

#pragma GCC visibility push(hidden)

namespace mulligan::sdk {

struct HeadPlan {
  std::int64_t blocks;
  static constexpr std::uint32_t kThreads = 128;

  // Declares the constants of heads.cuh. `groups`: heads, or whatever else a group takes; `pack`:
  // elements per access.
  HeadPlan(CudaCall& call, std::int64_t groups, std::int64_t width, int pack) {
    const std::int64_t accesses = (width + pack - 1) / pack;
    std::int64_t lanes = 1;
    while (lanes < 32 && lanes < accesses) lanes *= 2;
    call.constant("head_width", width);
    call.constant("head_lanes", lanes);
    call.constant("head_held", (accesses + lanes - 1) / lanes);
    blocks = (groups * lanes + kThreads - 1) / kThreads;
  }
  std::array<std::int64_t, 3> grid() const { return {blocks, 1, 1}; }
  std::array<std::uint32_t, 3> block() const { return {kThreads, 1, 1}; }
};

}  // namespace mulligan::sdk

#pragma GCC visibility pop
