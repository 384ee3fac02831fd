// Counting allocations of the whole process, plugins included.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

namespace mulligan {

// Read and written by the malloc of launch/plugin_check/count_allocations.cpp, in programs that are linked
// with it.
struct AllocationCount {
  std::atomic<bool> counting{false};
  std::atomic<bool (*)()> counts{nullptr};  // whether one made now counts; null: all do
  std::atomic<std::int64_t> allocations{0};
};
AllocationCount& allocation_count();

// Whether this program was linked with that malloc. Tries it.
bool allocations_are_counted();

// Allocations made by all threads while `body` runs, those for which `counts` holds; absent where this
// program cannot count them.
template <typename Body>
std::optional<std::int64_t> allocations_of(Body&& body, bool (*counts)() = nullptr) {
  if (!allocations_are_counted()) return {};
  AllocationCount& count = allocation_count();
  count.counts = counts;
  count.allocations = 0;
  count.counting = true;
  body();
  count.counting = false;
  count.counts = nullptr;
  return count.allocations.load();
}

}  // namespace mulligan
