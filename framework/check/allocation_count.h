// Counts allocations of the whole process, plugins included.
#pragma once

#include <atomic>
#include <cstdint>

namespace mulligan {

// The malloc of launch/plugin_check/count_allocations.cpp reads and writes it, in programs that are linked with it.
struct AllocationCount {
  bool linked = false;  // whether this program is linked with that malloc
  std::atomic<bool> counting{false};
  std::atomic<bool (*)()> counts{nullptr};  // whether to count an allocation now; null: count all
  std::atomic<std::int64_t> allocations{0};
};
AllocationCount& allocation_count();

}  // namespace mulligan
