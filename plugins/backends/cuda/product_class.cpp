#include "plugins/backends/cuda/product_class.h"

#include <bit>

namespace mulligan::cuda {
namespace {

std::int64_t rounded(std::int64_t extent) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(extent)));
}

}  // namespace

std::optional<GemmShape> product_class(const GemmShape& shape) {
  const double operations = 2.0 * static_cast<double>(shape.batch) * static_cast<double>(shape.m) *
                            static_cast<double>(shape.n) * static_cast<double>(shape.k);
  if (operations < fewest_measured_operations) return {};
  GemmShape rounded_shape = shape;
  for (std::int64_t* extent : {&rounded_shape.batch, &rounded_shape.m, &rounded_shape.n, &rounded_shape.k})
    *extent = rounded(*extent);
  rounded_shape.alpha = 1;
  rounded_shape.beta = shape.beta != 0 ? 1 : 0;
  return rounded_shape;
}

std::uint32_t ProductClasses::number(const GemmShape& shape) {
  const std::optional<GemmShape> known = product_class(shape);
  if (!known) return 0;
  return numbers_.try_emplace(*known, static_cast<std::uint32_t>(numbers_.size()) + 1).first->second;
}

}  // namespace mulligan::cuda
