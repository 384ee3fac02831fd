// The arguments that a kernel call reads and writes, by the kernel's signature.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "framework/graph/graph.h"
#include "framework/plugin/backend.h"

namespace mulligan {

struct Access {
  bool read = false, written = false;
};

class CallAccess {
 public:
  // For the kernels that `backend` knows now.
  explicit CallAccess(const Backend& backend);

  bool knows(std::string_view kernel) const { return kernels_.contains(kernel); }
  // The access of each argument of `call`, absent ones included. An `inout` argument counts as read unless the call
  // overwrites it. It does so by an attribute accumulate_NAME = 0, or, without such an attribute, by beta = 0. Throws
  // std::logic_error for an unknown kernel.
  std::vector<Access> of(const Call& call) const;

 private:
  struct Parameter {
    std::string direction, name;
  };
  std::map<std::string, std::vector<Parameter>, std::less<>> kernels_;
};

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
