// Static memory planning: where each scratch value of a Graph lies in one arena.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/graph/graph.h"

namespace mulligan {

// A kernel may read past no tensor's end, but vector loads like aligned starts.
inline constexpr std::int64_t arena_alignment = 256;

struct MemoryPlan {
  // Byte offset in the arena by value id (index 0 unused); -1 for externals, views and unmentioned values.
  std::vector<std::int64_t> offset;
  std::int64_t arena_bytes = 0;
  // Sum of all scratch values: what the arena would need without reuse.
  std::int64_t unshared_bytes = 0;
};

// Packs scratch values by liveness: two values share bytes only if no call mentions the one between the
// first and the last mention of the other. Largest first, each at the lowest offset that is free during
// its life. Deterministic.
MemoryPlan plan_memory(const Graph& graph);

}  // namespace mulligan
