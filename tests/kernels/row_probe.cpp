#include "tests/kernels/row_probe.h"

#include <sstream>
#include <stdexcept>

#include "tests/kernels/reference.h"

namespace mulligan::kernel_test {
namespace {

std::vector<RowCase>& registered() {
  static std::vector<RowCase> cases;
  return cases;
}

// Odd extents, and some that cross a tile: 600 columns of a matmul, 1,100 of an inner dimension.
std::int64_t extent(char letter, std::int64_t length) {
  static const std::map<char, std::int64_t> extents = {
      {'d', 72}, {'F', 136}, {'V', 67},  {'H', 4},   {'K', 2},   {'h', 16},   {'r', 4},
      {'w', 12}, {'m', 9},   {'R', 145}, {'n', 600}, {'k', 200}, {'y', 1100}, {'e', 51}};
  if (letter == 'T') return length * kMostSequences;
  if (letter == 'C') return kMostSequences + 1;
  if (letter == 'L') return length;
  if (letter >= '0' && letter <= '9') return letter - '0';
  return extents.at(letter);
}

mlg_dtype dtype_of(char letter, mlg_dtype compute) {
  switch (letter) {
    case 'f':
      return MLG_F32;
    case 'd':
      return MLG_F64;
    case 'i':
      return MLG_I32;
    case 'l':
      return MLG_I64;
    case 'u':
      return MLG_U8;
    case 'b':
      return MLG_BF16;
    default:
      return compute;
  }
}

}  // namespace

RegisterRows::RegisterRows(std::initializer_list<RowCase> cases) {
  registered().insert(registered().end(), cases);
}

const std::vector<RowCase>& row_cases() {
  return registered();
}

RowProbe::RowProbe(const RowCase& row_case, const Signature& signature, mlg_dtype dtype, bool accumulate)
    : kernel_(row_case.kernel), length_(row_case.length) {
  static NormalNumbers normal_numbers(7);
  Random random(7);
  std::size_t drawn = 0;
  std::istringstream words(row_case.arguments);
  for (std::string word; words >> word;) {
    const std::size_t colon = word.find(':'), slash = word.find('/');
    const std::string name = word.substr(0, colon), extents = word.substr(colon + 1, slash - colon - 1);
    const Parameter* parameter = signature.find(name);
    if (!parameter) throw std::invalid_argument(kernel_ + " has no argument " + name);
    Argument& argument = arguments_[name];
    argument.dtype = dtype_of(slash == word.npos ? 'A' : word[slash + 1], dtype);
    for (const char letter : extents) argument.shape.push_back(extent(letter, length_));
    argument.has_rows = extents[0] == 'T';
    argument.boundaries = extents[0] == 'C';
    if (argument.has_rows && parameter->written) rows_.insert(name);
    if (argument.boundaries || !parameter->read) continue;
    const bool integer = argument.dtype == MLG_I32 || argument.dtype == MLG_I64 || argument.dtype == MLG_U8;
    // Second moments and what a division reads are positive.
    const bool positive = name.ends_with("_sq") || name == "scalars" || name == "positive" ||
                          name == "negative" || name == "total" || name == "weight_sum";
    const std::size_t count = element_count(argument.shape);
    argument.values.reserve(count);
    const std::vector<double>& numbers = normal_numbers.first(drawn + (integer ? 0 : count));
    for (std::size_t i = 0; i < count; ++i) {
      double value = integer ? static_cast<double>(random() % 60) : numbers[drawn++];
      if (positive) value = std::abs(value) + 0.1;
      argument.values.push_back(integer ? value : round_to(argument.dtype, value));
    }
  }
  for (const std::string& name : signature.attributes) {
    const bool flag = name.starts_with("accumulate_");
    accumulates_ |= flag;
    attributes_[name] = flag && accumulate ? 1 : name == "row_length" ? static_cast<double>(length_) : 0;
  }
  std::istringstream attributes(row_case.attributes);
  for (std::string word; attributes >> word;) {
    const std::size_t equals = word.find('=');
    if (signature.has_attribute(word.substr(0, equals)))
      attributes_[word.substr(0, equals)] = std::stod(word.substr(equals + 1));
  }
}

KernelCall RowProbe::call(std::int64_t first, std::int64_t count) const {
  KernelCall call = kernel_call(kernel_, "", {}, attributes_);
  for (const auto& [name, argument] : arguments_) {
    Array array{argument.dtype, argument.shape, argument.values};
    if (argument.boundaries) {
      array.shape[0] = count + 1;
      for (std::int64_t i = 0; i <= count; ++i) array.values.push_back(static_cast<double>(i * length_));
    }
    if (argument.has_rows) {
      array.shape[0] = count * length_;
      if (!argument.values.empty()) {
        const std::int64_t row = element_count(argument.shape) / argument.shape[0] * length_;
        array.values.assign(argument.values.begin() + first * row,
                            argument.values.begin() + (first + count) * row);
      }
    }
    call.arguments[name] = std::move(array);
  }
  return call;
}

std::vector<std::byte> RowProbe::rows_of(const KernelResult& result, const std::string& name,
                                         std::int64_t sequence) const {
  const std::vector<std::byte>& bytes = result.bytes.at(name);
  const std::int64_t sequences = result.written.at(name).shape[0] / length_,
                     size = static_cast<std::int64_t>(bytes.size()) / sequences;
  return {bytes.begin() + sequence * size, bytes.begin() + (sequence + 1) * size};
}

}  // namespace mulligan::kernel_test
