// The arguments that a kernel call reads and writes, by the kernel's signature.
#pragma once

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
  // The same from signatures (<mulligan/kernel.h>), by kernel name.
  explicit CallAccess(const std::map<std::string, std::string>& signatures);

  bool knows(std::string_view kernel) const { return kernels_.contains(kernel); }
  // The access of each argument of `call`, absent ones included. An `inout` argument counts as read unless the call
  // overwrites it. It does so by an attribute accumulate_NAME = 0, or, without such an attribute, by beta = 0. Throws
  // std::logic_error for an unknown kernel.
  std::vector<Access> of(const Call& call) const;

 private:
  struct Parameter {
    std::string direction, name;
  };
  void add(const std::string& kernel, std::string_view signature);
  std::map<std::string, std::vector<Parameter>, std::less<>> kernels_;
};

}  // namespace mulligan
