#include "framework/graph/memory_plan.h"

#include <algorithm>

namespace mulligan {
namespace {

struct Lifetime {
  std::uint32_t id = 0;
  std::int64_t bytes = 0;
  std::int64_t first = 0, last = 0;  // indices of the first and last call that mention it
  std::int64_t offset = 0;
};

std::vector<Lifetime> scratch_lifetimes(const Graph& graph) {
  std::vector<Lifetime> by_id(graph.value_count() + 1);
  std::int64_t index = 0;
  for (const Call& call : graph.calls()) {
    for (const Value argument : call.arguments) {
      if (!argument) continue;
      const Value root = graph.root(argument);
      if (graph.info(root).storage != Graph::Storage::scratch) continue;
      Lifetime& life = by_id[root.id];
      if (life.id == 0) {
        const std::int64_t bytes = graph.type(root).bytes();
        life = {root.id, (bytes + arena_alignment - 1) / arena_alignment * arena_alignment, index, index, 0};
      }
      life.last = index;
    }
    ++index;
  }
  std::erase_if(by_id, [](const Lifetime& life) { return life.id == 0; });
  return by_id;
}

// The lowest offset at which `life` fits between the already placed values that are alive at the same time.
std::int64_t lowest_free_offset(const Lifetime& life, const std::vector<Lifetime>& placed_by_offset) {
  std::int64_t offset = 0;
  for (const Lifetime& other : placed_by_offset) {
    if (other.last < life.first || life.last < other.first) continue;
    if (offset + life.bytes <= other.offset) break;
    offset = std::max(offset, other.offset + other.bytes);
  }
  return offset;
}

}  // namespace

MemoryPlan plan_memory(const Graph& graph) {
  std::vector<Lifetime> lives = scratch_lifetimes(graph);
  std::ranges::sort(lives, [](const Lifetime& a, const Lifetime& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.id < b.id;
  });
  MemoryPlan plan;
  plan.offset.assign(graph.value_count() + 1, -1);
  std::vector<Lifetime> placed;  // sorted by offset
  for (Lifetime& life : lives) {
    life.offset = lowest_free_offset(life, placed);
    const auto position =
        std::ranges::upper_bound(placed, life.offset, {}, [](const Lifetime& other) { return other.offset; });
    placed.insert(position, life);
    plan.offset[life.id] = life.offset;
    plan.arena_bytes = std::max(plan.arena_bytes, life.offset + life.bytes);
    plan.unshared_bytes += life.bytes;
  }
  return plan;
}

}  // namespace mulligan
