#include "plugins/backends/cuda/calls/call_memory.h"

#include <mulligan/dtype.hpp>

#include <algorithm>
#include <stdexcept>
#include <string>

namespace mulligan::cuda {
namespace {

using backends::Direction;

std::size_t bytes_of(const mlg_tensor& tensor) {
  if (tensor.dtype == MLG_ABSENT) return 0;
  std::size_t bytes = sdk::dtype_bytes(tensor.dtype);
  for (const std::int64_t extent : tensor.shape) bytes *= static_cast<std::size_t>(extent);
  return bytes;
}

bool overlap(const DeviceArgument& a, const DeviceArgument& b) {
  const char *first = static_cast<const char*>(a.address), *second = static_cast<const char*>(b.address);
  return first < second + b.bytes && second < first + a.bytes;
}

}  // namespace

void CallMemory::bind(void* const* addresses, void* workspace, std::size_t workspace_bytes) {
  arguments_.bind(addresses, workspace, workspace_bytes);
  workspace_.address = workspace;
  workspace_.bytes = workspace_bytes;
  outputs_ = fresh_outputs();
  bound_ = true;
}

void CallMemory::require_bound() const {
  if (bound_) return;
  throw std::runtime_error(std::string("the kernel call '") + kernel_ + "' was run before it was bound");
}

bool CallMemory::aligned() const {
  return std::ranges::all_of(arguments_.tensors(), [](const mlg_tensor& tensor) {
    return reinterpret_cast<std::uintptr_t>(tensor.data) % 16 == 0;
  });
}

DeviceArgument CallMemory::tensor(std::uint32_t index) const {
  const mlg_tensor& tensor = arguments_.tensors().at(index);
  const backends::Parameter& parameter = arguments_.signature().arguments.at(index);
  DeviceArgument argument;
  argument.address = tensor.data;
  argument.bytes = bytes_of(tensor);
  argument.name = parameter.name.c_str();
  // `out` may be read back once it was written; that nothing older is read is what mark_unwritten() sees to.
  argument.writable = parameter.direction != Direction::in;
  return argument;
}

std::vector<DeviceArgument> CallMemory::fresh_outputs() const {
  std::vector<DeviceArgument> outputs;
  const auto& parameters = arguments_.signature().arguments;
  for (std::uint32_t i = 0; i < parameters.size(); ++i) {
    const DeviceArgument argument = tensor(i);
    if (parameters[i].direction != Direction::out || !argument.address) continue;
    bool shared = false;
    for (std::uint32_t j = 0; j < parameters.size(); ++j) {
      shared = shared || (j != i && tensor(j).address && overlap(argument, tensor(j)));
    }
    if (!shared) outputs.push_back(argument);
  }
  return outputs;
}

void CallMemory::mark_unwritten() const {
  for (const DeviceArgument& output : outputs_) device_.mark_unwritten(output);
  if (workspace_.bytes > 0) device_.mark_unwritten(workspace_);
}

void CallMemory::require_written() const {
  for (const DeviceArgument& output : outputs_) device_.require_written(output);
  if (workspace_.bytes > 0) device_.mark_written(workspace_);
}

}  // namespace mulligan::cuda
