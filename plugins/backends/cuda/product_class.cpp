#include "plugins/backends/cuda/product_class.h"

#include <bit>

namespace mulligan::cuda {

std::optional<GemmShape> product_class(const GemmShape& shape) {
  const double operations = 2.0 * static_cast<double>(shape.batch) * static_cast<double>(shape.m) *
                            static_cast<double>(shape.n) * static_cast<double>(shape.k);
  if (operations < fewest_measured_operations) return {};
  GemmShape rounded = shape;
  for (std::int64_t* extent : {&rounded.batch, &rounded.m, &rounded.n, &rounded.k})
    *extent = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(*extent)));
  rounded.alpha = 1;
  rounded.beta = shape.beta != 0 ? 1 : 0;
  return rounded;
}

std::uint32_t ProductClasses::number(const GemmShape& shape) {
  const std::optional<GemmShape> known = product_class(shape);
  if (!known) return 0;
  return numbers_.try_emplace(*known, static_cast<std::uint32_t>(numbers_.size()) + 1).first->second;
}

}  // namespace mulligan::cuda
