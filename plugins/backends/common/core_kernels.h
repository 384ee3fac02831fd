// The kernels of a backend's library: each of its files adds its own while the library is loaded.
#pragma once

#include <mulligan/kernel.h>

#include <vector>

namespace mulligan::backends {

inline std::vector<mlg_kernel>& core_kernels() {
  static std::vector<mlg_kernel> kernels;
  return kernels;
}

struct Register {
  Register(const mlg_kernel& kernel) { core_kernels().push_back(kernel); }
};

}  // namespace mulligan::backends
