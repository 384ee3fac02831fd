#include "framework/graph/fused_kernels.h"

#include <algorithm>

namespace mulligan {

bool FusedKernels::have(std::initializer_list<std::string_view> kernels) const {
  if (!backend_ || !backend_->fused_kernels()) return false;
  return std::ranges::all_of(kernels, [this](std::string_view name) { return backend_->has_kernel(name); });
}

}  // namespace mulligan
