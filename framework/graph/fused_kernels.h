// Which fused kernels a graph may use.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "framework/graph/call_access.h"
#include "framework/plugin/backend.h"

namespace mulligan {

// A fused kernel computes the result of several calls in one pass over memory. Backends may lack fused kernels. If they do,
// or if run.fused_kernels is off, the graph keeps the plain calls. Both ways agree up to rounding.
class FusedKernels {
 public:
  FusedKernels() = default;  // none
  // Those of `backend`, unless fused kernels are off for it. The backend must outlive this object.
  explicit FusedKernels(const Backend& backend) : backend_(&backend) {}
  // Whether all of `kernels` may be used.
  bool have(std::initializer_list<std::string_view> kernels) const {
    return backend_ && backend_->fused_kernels() &&
           std::ranges::all_of(kernels, [this](std::string_view name) { return backend_->has_kernel(name); });
  }
  // The accesses of the backend's kernels. Requires at least one usable kernel.
  CallAccess access() const { return CallAccess(*backend_); }

 private:
  const Backend* backend_ = nullptr;
};

}  // namespace mulligan
