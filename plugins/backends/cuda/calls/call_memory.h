// The memory that a call names: its arguments and workspace as the device sees them, and what the device's
// checks are told about them around a run.
#pragma once

#include <mulligan/backend.h>

#include <cstdint>
#include <vector>

#include "plugins/backends/common/call_arguments.h"
#include "plugins/backends/cuda/device.h"

namespace mulligan::cuda {

class CallMemory {
 public:
  // Throws std::runtime_error when the call does not fit the kernel's signature.
  CallMemory(Device& device, const mlg_kernel& kernel, const mlg_call& call)
      : device_(device), kernel_(kernel.name), arguments_(kernel, call) {}

  const backends::CallArguments& arguments() const { return arguments_; }
  void* workspace() const { return workspace_.address; }

  void bind(void* const* addresses, void* workspace, std::size_t workspace_bytes);
  // Throws std::runtime_error before the first bind().
  void require_bound() const;
  // Whether every address is a multiple of 16, so that accesses of 16 bytes are allowed.
  bool aligned() const;
  DeviceArgument tensor(std::uint32_t index) const;

  // Before a run: `out` arguments that share no memory with an argument that is read hold nothing yet, nor
  // does the workspace. After it: those arguments must have been written, and the host may look at the
  // workspace again.
  void mark_unwritten() const;
  void require_written() const;

 private:
  std::vector<DeviceArgument> fresh_outputs() const;

  Device& device_;
  const char* kernel_;
  backends::CallArguments arguments_;
  DeviceArgument workspace_;
  std::vector<DeviceArgument> outputs_;
  bool bound_ = false;
};

}  // namespace mulligan::cuda
