#include "framework/check/allocation_count.h"

#include <cstdlib>

namespace mulligan {

AllocationCount& allocation_count() {
  static constinit AllocationCount count;
  return count;
}

bool allocations_are_counted() {
  AllocationCount& count = allocation_count();
  count.allocations = 0;
  count.counting = true;
  void* volatile memory = std::malloc(1);  // volatile: the compiler must not remove the unused call
  count.counting = false;
  std::free(memory);
  return count.allocations.load() > 0;
}

}  // namespace mulligan
