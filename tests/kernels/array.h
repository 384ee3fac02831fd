// Host tensors of the kernel tests: values in double, together with the dtype in which a kernel sees them.
#pragma once

#include <mulligan/tensor.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mulligan::kernel_test {

struct Array {
  mlg_dtype dtype = MLG_F32;
  std::vector<std::int64_t> shape;
  std::vector<double> values;  // row-major; each exactly representable in `dtype` once encoded
};

std::int64_t element_count(const std::vector<std::int64_t>& shape);
std::size_t bytes_per_element(mlg_dtype dtype);
const char* dtype_name(mlg_dtype dtype);

// `value` rounded once, to nearest even, to `dtype` (integers: must be exact). Written with frexp arithmetic
// so that it shares nothing with the kernels' conversions.
double round_to(mlg_dtype dtype, double value);

// The bytes of `array`, each value rounded to its dtype; and back.
std::vector<std::byte> encode(const Array& array);
std::vector<double> decode(mlg_dtype dtype, const std::vector<std::byte>& bytes);

}  // namespace mulligan::kernel_test
