#include "plugins/backends/common/call_arguments.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace mulligan::backends {

CallArguments::CallArguments(const mlg_kernel& kernel, const mlg_call& call)
    : kernel_(kernel.name),
      signature_text_(kernel.signature),
      signature_(parse_signature(kernel.name, kernel.signature)) {
  const std::string where = std::string("kernel ") + kernel_ + ": ";
  if (call.argument_count != signature_.arguments.size()) {
    throw std::runtime_error(where + "the call gives " + std::to_string(call.argument_count) +
                             " arguments, its signature '" + signature_text_ + "' has " +
                             std::to_string(signature_.arguments.size()));
  }
  tensors_.assign(call.arguments, call.arguments + call.argument_count);
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    tensors_[i].data = nullptr;
    if (tensors_[i].dtype == MLG_ABSENT && !signature_.arguments[i].optional) {
      throw std::runtime_error(where + "argument " + signature_.arguments[i].name +
                               " is required, but the call leaves it out");
    }
  }
  place_attributes(call);
}

void CallArguments::place_attributes(const mlg_call& call) {
  const std::vector<std::string>& names = signature_.attributes;
  attributes_.assign(names.size(), 0.0);
  std::vector<bool> given(names.size(), false);
  for (std::uint32_t i = 0; i < call.attribute_count; ++i) {
    const auto place = std::find(names.begin(), names.end(), call.attributes[i].name);
    const std::size_t index = static_cast<std::size_t>(place - names.begin());
    if (place == names.end() || given[index]) {
      throw std::runtime_error(std::string("kernel ") + kernel_ + ": attribute " + call.attributes[i].name +
                               (place == names.end() ? " is not" : " is given twice, but only once") +
                               " in its signature '" + signature_text_ + "'");
    }
    attributes_[index] = call.attributes[i].value;
    given[index] = true;
  }
  const auto missing = std::find(given.begin(), given.end(), false);
  if (missing != given.end()) {
    throw std::runtime_error(std::string("kernel ") + kernel_ + ": the call does not give attribute " +
                             names[static_cast<std::size_t>(missing - given.begin())]);
  }
}

mlg_launch CallArguments::launch() const {
  mlg_launch launch{};
  launch.arguments = tensors_.data();
  launch.argument_count = static_cast<std::uint32_t>(tensors_.size());
  launch.attributes = attributes_.data();
  return launch;
}

void CallArguments::bind(void* const* addresses, void* workspace, std::size_t workspace_bytes) {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    mlg_tensor& tensor = tensors_[i];
    const bool empty = tensor.dtype == MLG_ABSENT || std::any_of(tensor.shape, tensor.shape + MLG_MAX_RANK,
                                                                 [](std::int64_t n) { return n == 0; });
    if (!empty && addresses[i] == nullptr) {
      throw std::runtime_error(
          std::string("kernel ") + kernel_ + ": argument " + signature_.arguments[i].name +
          " is bound to no address; bind every argument that the call was prepared with");
    }
    tensor.data = tensor.dtype == MLG_ABSENT ? nullptr : addresses[i];
  }
  if (workspace_bytes > 0 && workspace == nullptr) {
    throw std::runtime_error(std::string("kernel ") + kernel_ + ": it needs " +
                             std::to_string(workspace_bytes) + " bytes of workspace, but none was bound");
  }
}

}  // namespace mulligan::backends
