// Which matmuls take their algorithm from one measurement.
//
// A library's algorithms are timed on a matmul, which takes tens of milliseconds; test-time training has
// thousands of shapes of matmuls, which differ in numbers of documents and tokens. So matmuls whose extents
// round to the same numbers share the measurement of the first of them, and small ones have none: there the
// first algorithm that the library proposes is as good as what timing would tell.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "plugins/backends/cuda/device.h"

namespace mulligan::cuda {

// The class of a matmul: its extents rounded up to powers of two; nothing for a matmul
// of less than fewest_measured_operations.
std::optional<GemmShape> product_class(const GemmShape& shape);

inline constexpr double fewest_measured_operations = 8589934592.0;  // 2^33: about 15 us of an H100

// Numbers classes from 1 on, in the order in which they are first asked for.
class ProductClasses {
 public:
  // 0 for a matmul without a class.
  std::uint32_t number(const GemmShape& shape);

 private:
  std::map<GemmShape, std::uint32_t> numbers_;
};

}  // namespace mulligan::cuda
