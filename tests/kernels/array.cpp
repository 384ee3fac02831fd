#include "tests/kernels/array.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

namespace mulligan::kernel_test {
namespace {

struct FloatFormat {
  int precision;         // significant bits, the hidden one included
  int minimum_exponent;  // of the smallest normal number, as std::ilogb gives it
  double largest;
};

double round_to_format(double value, const FloatFormat& format) {
  if (!std::isfinite(value) || value == 0.0) return value;
  const int exponent = std::max(std::ilogb(value), format.minimum_exponent);
  const int shift = format.precision - 1 - exponent;
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(value, shift)), -shift);
  if (std::abs(rounded) > format.largest)
    return std::copysign(std::numeric_limits<double>::infinity(), value);
  return rounded;
}

template <typename T>
void put(std::vector<std::byte>& bytes, std::size_t index, T value) {
  std::memcpy(bytes.data() + index * sizeof(T), &value, sizeof(T));
}

template <typename T>
T get(const std::vector<std::byte>& bytes, std::size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

bool is_bf16(double value) {
  const auto single = static_cast<float>(value);
  return static_cast<double>(single) == value && (std::bit_cast<std::uint32_t>(single) & 0xFFFF) == 0;
}

double float_from_bits(std::uint32_t bits) {
  return static_cast<double>(std::bit_cast<float>(bits));
}

}  // namespace

std::int64_t element_count(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}

std::size_t bytes_per_element(mlg_dtype dtype) {
  switch (dtype) {
    case MLG_F64:
    case MLG_I64:
      return 8;
    case MLG_F32:
    case MLG_I32:
      return 4;
    case MLG_BF16:
    case MLG_F16:
    case MLG_U16:
      return 2;
    case MLG_U8:
    case MLG_I8:
      return 1;
    case MLG_ABSENT:
      break;
  }
  throw std::invalid_argument("bytes_per_element: an absent tensor has no elements");
}

const char* dtype_name(mlg_dtype dtype) {
  switch (dtype) {
    case MLG_F64:
      return "f64";
    case MLG_F32:
      return "f32";
    case MLG_BF16:
      return "bf16";
    case MLG_F16:
      return "f16";
    case MLG_I64:
      return "i64";
    case MLG_I32:
      return "i32";
    case MLG_U16:
      return "u16";
    case MLG_U8:
      return "u8";
    case MLG_I8:
      return "i8";
    case MLG_ABSENT:
      break;
  }
  return "absent";
}

double round_to(mlg_dtype dtype, double value) {
  switch (dtype) {
    case MLG_F32:
      return static_cast<double>(static_cast<float>(value));
    case MLG_BF16:
      if (is_bf16(value)) return value;  // most are, and this is asked often
      return round_to_format(value, {8, -126, 0x1.FEp127});
    case MLG_F16:
      return round_to_format(value, {11, -14, 65504.0});
    default:
      return value;
  }
}

std::vector<std::byte> encode(const Array& array) {
  std::vector<std::byte> bytes(array.values.size() * bytes_per_element(array.dtype));
  for (std::size_t i = 0; i < array.values.size(); ++i) {
    const double value = round_to(array.dtype, array.values[i]);
    switch (array.dtype) {
      case MLG_F64:
        put(bytes, i, value);
        break;
      case MLG_F32:
        put(bytes, i, static_cast<float>(value));
        break;
      case MLG_BF16:
        put(bytes, i,
            static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(value)) >> 16));
        break;
      case MLG_F16:
        put(bytes, i, static_cast<_Float16>(value));
        break;
      case MLG_I64:
        put(bytes, i, static_cast<std::int64_t>(value));
        break;
      case MLG_I32:
        put(bytes, i, static_cast<std::int32_t>(value));
        break;
      case MLG_U16:
        put(bytes, i, static_cast<std::uint16_t>(value));
        break;
      case MLG_U8:
        put(bytes, i, static_cast<std::uint8_t>(value));
        break;
      case MLG_I8:
        put(bytes, i, static_cast<std::int8_t>(value));
        break;
      case MLG_ABSENT:
        break;
    }
  }
  return bytes;
}

std::vector<double> decode(mlg_dtype dtype, const std::vector<std::byte>& bytes) {
  std::vector<double> values(bytes.size() / bytes_per_element(dtype));
  for (std::size_t i = 0; i < values.size(); ++i) {
    switch (dtype) {
      case MLG_F64:
        values[i] = get<double>(bytes, i);
        break;
      case MLG_F32:
        values[i] = static_cast<double>(get<float>(bytes, i));
        break;
      case MLG_BF16:
        values[i] = float_from_bits(static_cast<std::uint32_t>(get<std::uint16_t>(bytes, i)) << 16);
        break;
      case MLG_F16:
        values[i] = static_cast<double>(get<_Float16>(bytes, i));
        break;
      case MLG_I64:
        values[i] = static_cast<double>(get<std::int64_t>(bytes, i));
        break;
      case MLG_I32:
        values[i] = get<std::int32_t>(bytes, i);
        break;
      case MLG_U16:
        values[i] = get<std::uint16_t>(bytes, i);
        break;
      case MLG_U8:
        values[i] = get<std::uint8_t>(bytes, i);
        break;
      case MLG_I8:
        values[i] = get<std::int8_t>(bytes, i);
        break;
      case MLG_ABSENT:
        break;
    }
  }
  return values;
}

}  // namespace mulligan::kernel_test
