#include "plugins/backends/cuda/triton/call_number.h"

#include <mulligan/tensor.h>

#include <algorithm>
#include <regex>
#include <stdexcept>

namespace mulligan::cuda::triton {

CallNumber::CallNumber(const std::string& text, const backends::Signature& signature, const std::string& file)
    : text_(text) {
  const auto attribute = std::ranges::find(signature.attributes, text);
  if (attribute != signature.attributes.end()) {
    attribute_ = static_cast<std::uint32_t>(attribute - signature.attributes.begin());
    return;
  }
  static const std::regex form(
      R"((\d{1,10})|\s*(\w+)\.(?:size|shape\[([0-3])\])(?:\s*/\s*([1-9][0-9]{0,8}))?\s*)");
  std::smatch match;
  if (!std::regex_match(text, match, form)) {
    throw std::runtime_error(
        file + ": '" + text +
        "' is no attribute and not of the form ARGUMENT.shape[AXIS] or ARGUMENT.size, with / "
        "NUMBER after it if it is to be divided");
  }
  if (match[1].matched) {
    constant_ = std::stod(match[1]);
    return;
  }
  const auto argument = std::ranges::find(signature.arguments, match[2].str(), &backends::Parameter::name);
  if (argument == signature.arguments.end()) {
    throw std::runtime_error(file + ": '" + text + "' names an argument that the kernel does not have");
  }
  argument_ = static_cast<std::uint32_t>(argument - signature.arguments.begin());
  if (match[3].matched) axis_ = std::stoi(match[3]);
  if (match[4].matched) divisor_ = std::stoll(match[4]);
}

double CallNumber::of(const mlg_launch& call) const {
  if (constant_) return *constant_;
  if (attribute_) return call.attributes[*attribute_];
  const mlg_tensor& tensor = call.arguments[argument_];
  if (tensor.dtype == MLG_ABSENT) return 0;
  std::int64_t value = 1;
  for (int axis = 0; axis < tensor.rank; ++axis) {
    if (axis_ < 0 || axis_ == axis) value *= tensor.shape[axis];
  }
  return static_cast<double>((value + divisor_ - 1) / divisor_);
}

}  // namespace mulligan::cuda::triton
