#include "plugins/backends/cuda/invariant_kernels.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "kernels/leaky_relu_squared/signature_linear.h"

namespace mulligan::cuda {

std::vector<mlg_kernel> invariant_kernels(std::span<const mlg_kernel> kernels) {
  const std::span<const mlg_kernel> products = fixed_matmul_kernels();
  std::vector<mlg_kernel> invariant(products.begin(), products.end());
  const std::span<const mlg_kernel> attention = invariant_attention_forward();
  invariant.insert(invariant.end(), attention.begin(), attention.end());
  const auto left_out = [&](std::string_view name) {
    return name == shapes::LinearLeakyReluSquaredForward::name ||
           name == shapes::LinearLeakyReluSquaredBackward::name ||
           std::ranges::any_of(invariant, [name](const mlg_kernel& own) { return name == own.name; });
  };
  std::ranges::copy_if(kernels, std::back_inserter(invariant),
                       [&](const mlg_kernel& kernel) { return !left_out(kernel.name); });
  return invariant;
}

}  // namespace mulligan::cuda
