#include "tests/ptx/agreement.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <sstream>

namespace mulligan::ptx {
namespace {

enum class Type { f32, f64, bf16, f16, other };

// Of each parameter of "void f<bf16, 8>(bf16 const*, float*, long long)".
std::vector<Type> types_of(const std::string& prototype) {
  std::vector<Type> types;
  std::size_t begin = prototype.rfind('(');
  std::string word;
  int depth = 0;
  const auto finish = [&] {
    types.push_back(!word.ends_with('*')               ? Type::other
                    : word.find("bf16") != word.npos   ? Type::bf16
                    : word.find("f16") != word.npos    ? Type::f16
                    : word.find("float") != word.npos  ? Type::f32
                    : word.find("double") != word.npos ? Type::f64
                                                       : Type::other);
    word.clear();
  };
  for (++begin; begin < prototype.size(); ++begin) {
    const char c = prototype[begin];
    depth += c == '<' ? 1 : c == '>' ? -1 : 0;
    if (c == ')' || (c == ',' && depth == 0)) {
      finish();
    } else {
      word += c;
    }
  }
  return types;
}

float half_value(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, digits = bits & 1023;
  const float size = exponent == 31  ? (digits ? NAN : INFINITY)
                     : exponent == 0 ? std::ldexp(static_cast<float>(digits), -24)
                                     : std::ldexp(static_cast<float>(digits + 1024), exponent - 25);
  return bits & 0x8000 ? -size : size;
}

// The bits of a number as an integer that counts the numbers of its dtype in order, and its value.
struct Number {
  std::int64_t order;
  double value;
};
template <typename Bits>
std::int64_t order_of(Bits bits) {
  constexpr Bits sign = Bits{1} << (8 * sizeof(Bits) - 1);
  return bits & sign ? -static_cast<std::int64_t>(bits & (sign - 1)) : static_cast<std::int64_t>(bits);
}
Number number_at(Type type, const char* at) {
  if (type == Type::f64) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, at, 8);
    double value = 0;
    std::memcpy(&value, at, 8);
    return {order_of(bits), value};
  }
  if (type == Type::f32) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, at, 4);
    float value = 0;
    std::memcpy(&value, at, 4);
    return {order_of(bits), value};
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, at, 2);
  if (type == Type::f16) return {order_of(bits), half_value(bits)};
  const std::uint32_t wide = std::uint32_t{bits} << 16;
  float value = 0;
  std::memcpy(&value, &wide, 4);
  return {order_of(bits), value};
}

// Arguments whose numbers are all smaller hold nothing but rounding, as the gradients of attention of a lone token do.
constexpr double kLeast = 1e-4;

std::size_t bytes_of(Type type) {
  return type == Type::f64 ? 8 : type == Type::f32 ? 4 : type == Type::other ? 1 : 2;
}

}  // namespace

Agreement::Memory Agreement::snapshot(const std::vector<cuda::DeviceArgument>& arguments,
                                      const cuda::DeviceMemory& memory) {
  Memory taken;
  for (const cuda::DeviceArgument& argument : arguments) {
    auto& bytes = taken.bytes.emplace_back();
    auto& marks = taken.marks.emplace_back();
    if (!argument.address || !argument.writable) continue;
    const char* begin = static_cast<const char*>(argument.address);
    const unsigned char* known = memory.marks(argument.address, argument.bytes);
    bytes.assign(begin, begin + argument.bytes);
    marks.assign(known, known + argument.bytes);
  }
  return taken;
}

void Agreement::restore(const Memory& from, const std::vector<cuda::DeviceArgument>& arguments,
                        const cuda::DeviceMemory& memory) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (from.bytes[i].empty()) continue;
    std::ranges::copy(from.bytes[i], static_cast<char*>(arguments[i].address));
    std::ranges::copy(from.marks[i], memory.marks(arguments[i].address, arguments[i].bytes));
  }
}

void Agreement::compare(const std::string& function, const std::string& prototype, const Program& program,
                        const Memory& expected, const std::vector<cuda::DeviceArgument>& arguments,
                        const cuda::DeviceMemory& memory) {
  Row& row = rows_[function];
  ++row.launches;
  for (const std::string& line : program.text) {
    if (line.find("fma.") != line.npos || line.find("mul.f") != line.npos)
      row.reason = std::max(row.reason, 1);
    if (line.find(".approx") != line.npos || line.find("div.full") != line.npos) row.reason = 2;
  }
  const std::vector<Type> types = types_of(prototype);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (expected.bytes[i].empty()) continue;
    const Type type = i < types.size() ? types[i] : Type::other;
    const char* got = static_cast<const char*>(arguments[i].address);
    const unsigned char* known = memory.marks(arguments[i].address, arguments[i].bytes);
    double largest_difference = 0, largest_value = 0;
    for (std::size_t at = 0; at + bytes_of(type) <= arguments[i].bytes; at += bytes_of(type)) {
      if (!known[at] && !expected.marks[i][at]) continue;
      ++row.elements;
      if (known[at] != expected.marks[i][at]) {
        ++row.differing;
        row.largest_ulps = INFINITY;
        continue;
      }
      if (type == Type::other) {
        if (got[at] != expected.bytes[i][at]) {
          ++row.differing;
          row.largest_ulps = INFINITY;
        }
        continue;
      }
      const Number a = number_at(type, got + at), b = number_at(type, expected.bytes[i].data() + at);
      if (std::isfinite(b.value)) largest_value = std::max(largest_value, std::abs(b.value));
      if (a.order == b.order || (std::isnan(a.value) && std::isnan(b.value))) continue;
      ++row.differing;
      const bool finite = std::isfinite(a.value) && std::isfinite(b.value);
      row.largest_ulps =
          std::max(row.largest_ulps, finite ? std::abs(static_cast<double>(a.order - b.order)) : INFINITY);
      largest_difference = std::max(largest_difference, finite ? std::abs(a.value - b.value) : INFINITY);
    }
    if (largest_difference > 0)
      row.largest_relative =
          std::max(row.largest_relative, largest_difference / std::max(largest_value, kLeast));
  }
}

// A line: function, launches, elements, differing, ulps, relative, reason, cut by tabulators.
void Agreement::join_file() {
  std::ifstream file(file_);
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    std::string function, launches, elements, differing, ulps, relative, reason;
    for (std::string* field : {&function, &launches, &elements, &differing, &ulps, &relative, &reason})
      std::getline(fields, *field, '\t');
    Row& row = rows_[function];
    row.launches += std::stoll(launches);
    row.elements += std::stoll(elements);
    row.differing += std::stoll(differing);
    row.largest_ulps = std::max(row.largest_ulps, std::stod(ulps));
    row.largest_relative = std::max(row.largest_relative, std::stod(relative));
    row.reason = std::max(row.reason, std::stoi(reason));
  }
}

Agreement::~Agreement() {
  join_file();
  std::ofstream file(file_);
  for (const auto& [function, row] : rows_) {
    file << function << '\t' << row.launches << '\t' << row.elements << '\t' << row.differing << '\t'
         << row.largest_ulps << '\t' << row.largest_relative << '\t' << row.reason << '\n';
  }
}

}  // namespace mulligan::ptx
