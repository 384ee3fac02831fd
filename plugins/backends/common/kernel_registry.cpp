#include "plugins/backends/common/kernel_registry.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "plugins/backends/common/kernel_signature.h"

namespace mulligan::backends {
namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, substituted}));
    }
  }
  return row[b.size()];
}

}  // namespace

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
  const auto nearest = std::min_element(index_.begin(), index_.end(), [&](const auto& a, const auto& b) {
    return edit_distance(a.first, name) < edit_distance(b.first, name);
  });
  throw std::runtime_error("the " + backend_ + " backend has no kernel named " + std::string(name) +
                           (nearest == index_.end() ? "" : "; the nearest name is " + nearest->first));
}

}  // namespace mulligan::backends
