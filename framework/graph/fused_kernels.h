// Which fused kernels a graph may use.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "framework/graph/call_access.h"
#include "framework/plugin/backend.h"

namespace mulligan {

// A fused kernel computes what several calls of a graph compute, and crosses memory once. Backends need not
// bring any: a graph that is built for a backend without them, or where run.fused_kernels is off, is made of
// the plain calls. Both ways agree up to rounding.
class FusedKernels {
 public:
  FusedKernels() = default;  // none
  // Those that `backend` brings, unless it was told to do without. It must outlive this object.
  explicit FusedKernels(const Backend& backend) : backend_(&backend) {}
  // Whether all of `kernels` may be used.
  bool have(std::initializer_list<std::string_view> kernels) const {
    return backend_ && backend_->fused_kernels() &&
           std::ranges::all_of(kernels, [this](std::string_view name) { return backend_->has_kernel(name); });
  }
  // What the backend's kernels read and write. Where there are any to use.
  CallAccess access() const { return CallAccess(*backend_); }

 private:
  const Backend* backend_ = nullptr;
};

}  // namespace mulligan
