#include "tests/kernels/array.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

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

// fp16 in the words of f64, for normal numbers: the compiler's own conversions call a function for each value, and every array
// of every call is converted.
constexpr int kHalfShift = 52 - 10;                           // between the two mantissas
constexpr std::uint64_t kHalfBias = std::uint64_t{1023 - 15}  // between the two exponents
                                    << 52;

bool is_normal_f16(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const std::uint64_t exponent = bits >> 52 & 0x7FF;
  return exponent >= 1023 - 14 && exponent <= 1023 + 15 &&
         (bits & ((std::uint64_t{1} << kHalfShift) - 1)) == 0;
}

std::uint16_t half_word(double value) {
  if (!is_normal_f16(value)) return std::bit_cast<std::uint16_t>(static_cast<_Float16>(value));
  const auto bits = std::bit_cast<std::uint64_t>(value);
  return static_cast<std::uint16_t>((bits >> 48 & 0x8000) |
                                    (((bits & ~(std::uint64_t{1} << 63)) - kHalfBias) >> kHalfShift));
}

double half_from_word(std::uint16_t word) {
  const int exponent = word >> 10 & 31;
  if (exponent == 0 || exponent == 31) return static_cast<double>(std::bit_cast<_Float16>(word));
  return std::bit_cast<double>((std::uint64_t{word} & 0x8000) << 48 |
                               (((std::uint64_t{word} & 0x7FFF) << kHalfShift) + kHalfBias));
}

// Bytes of `values`: `stored` turns each value into what lies in memory. And the reverse.
template <typename Stored>
std::vector<std::byte> stored_values(const std::vector<double>& values, Stored stored) {
  std::vector<std::byte> bytes(values.size() * sizeof(stored(0.0)));
  for (std::size_t i = 0; i < values.size(); ++i) put(bytes, i, stored(values[i]));
  return bytes;
}

template <typename T, typename Value>
std::vector<double> read_values(const std::vector<std::byte>& bytes, Value value) {
  std::vector<double> values(bytes.size() / sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = value(get<T>(bytes, i));
  return values;
}

// body(Stored{}): the type as which memory holds elements of `dtype`.
template <typename Body>
auto of_type(mlg_dtype dtype, Body body) {
  switch (dtype) {
    case MLG_F64:
      return body(double{});
    case MLG_F32:
      return body(float{});
    case MLG_I64:
      return body(std::int64_t{});
    case MLG_I32:
      return body(std::int32_t{});
    case MLG_BF16:
    case MLG_F16:
    case MLG_U16:
      return body(std::uint16_t{});
    case MLG_U8:
      return body(std::uint8_t{});
    case MLG_I8:
      return body(std::int8_t{});
    case MLG_ABSENT:
      break;
  }
  throw std::invalid_argument("an absent tensor has no elements");
}

}  // namespace

std::int64_t element_count(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}

std::size_t bytes_per_element(mlg_dtype dtype) {
  return of_type(dtype, []<typename Stored>(Stored) { return sizeof(Stored); });
}

const char* dtype_name(mlg_dtype dtype) {
  for (const auto& [known, name] : {std::pair{MLG_F64, "f64"},
                                    {MLG_F32, "f32"},
                                    {MLG_BF16, "bf16"},
                                    {MLG_F16, "f16"},
                                    {MLG_I64, "i64"},
                                    {MLG_I32, "i32"},
                                    {MLG_U16, "u16"},
                                    {MLG_U8, "u8"},
                                    {MLG_I8, "i8"}}) {
    if (known == dtype) return name;
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
      if (is_normal_f16(value)) return value;
      return round_to_format(value, {11, -14, 65504.0});
    default:
      return value;
  }
}

std::vector<std::byte> encode(const Array& array) {
  return of_type(array.dtype, [&]<typename Stored>(Stored) {
    return stored_values(array.values, [dtype = array.dtype](double value) {
      if (dtype == MLG_F16) return static_cast<Stored>(half_word(round_to(MLG_F16, value)));
      if (dtype != MLG_BF16) return static_cast<Stored>(value);
      const auto single = static_cast<float>(round_to(MLG_BF16, value));
      return static_cast<Stored>(std::bit_cast<std::uint32_t>(single) >> 16);
    });
  });
}

std::vector<double> decode(mlg_dtype dtype, const std::vector<std::byte>& bytes) {
  return of_type(dtype, [&]<typename Stored>(Stored) {
    return read_values<Stored>(bytes, [dtype](Stored value) {
      if (dtype == MLG_F16) return half_from_word(static_cast<std::uint16_t>(value));
      if (dtype == MLG_BF16) return float_from_bits(static_cast<std::uint32_t>(value) << 16);
      return static_cast<double>(value);
    });
  });
}

}  // namespace mulligan::kernel_test
