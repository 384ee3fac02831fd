#include "plugins/backends/common/kernel_registry.h"

#include <stdexcept>

#include "plugins/backends/common/kernel_signature.h"

namespace mulligan::backends {

void KernelRegistry::add(std::span<const mlg_kernel> kernels, bool replace) {
  for (const mlg_kernel& kernel : kernels) {
    if (backend_ != kernel.backend) continue;
    const auto known = index_.find(std::string_view(kernel.name));
    if (known != index_.end() && !replace) {
      throw std::runtime_error(std::string("kernel ") + kernel.name + " exists already on the " + backend_ +
                               " backend; give it another name, or replace it explicitly");
    }
    parse_signature(kernel.name, kernel.signature);
    if (known != index_.end()) {
      kernels_[known->second] = kernel;
    } else {
      index_.emplace(kernel.name, kernels_.size());
      kernels_.push_back(kernel);
    }
  }
}

const mlg_kernel* KernelRegistry::at(std::uint32_t index) const noexcept {
  return index < kernels_.size() ? &kernels_[index] : nullptr;
}

const mlg_kernel& KernelRegistry::named(std::string_view name) const {
  if (const auto known = index_.find(name); known != index_.end()) return kernels_[known->second];
  throw std::runtime_error("the " + backend_ + " backend has no kernel named " + std::string(name));
}

}  // namespace mulligan::backends
