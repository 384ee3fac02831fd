#include "framework/check/allocation_count.h"

namespace mulligan {

AllocationCount& allocation_count() {
  static constinit AllocationCount count;
  return count;
}

}  // namespace mulligan
