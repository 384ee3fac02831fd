// Counts allocations of the whole process, plugins included.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

namespace mulligan {

// The malloc of launch/plugin_check/count_allocations.cpp reads and writes it, in programs that are linked with it.
struct AllocationCount {
  std::atomic<bool> counting{false};
  std::atomic<bool (*)()> counts{nullptr};  // whether to count an allocation now; null: count all
  std::atomic<std::int64_t> allocations{0};
};
AllocationCount& allocation_count();

// Whether this program is linked with that malloc. Tries it.
bool allocations_are_counted();

// Allocations of all threads while `body` runs, counted if `counts` holds. Absent if this program cannot count them.
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
