// A kernel call of the cuda backend, made ready on a device: a matmul, the kernel's own code, both, a
// compiled file in its place, or a library's attention (make_device_call.cpp has them all).
#pragma once

#include <mulligan/backend.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace mulligan::cuda {

class AttentionLibrary;
class Device;
namespace triton {
class CompiledKernel;
}

class DeviceCall {
 public:
  virtual ~DeviceCall() = default;

  virtual std::size_t workspace_bytes() const = 0;
  // Fixes the addresses. Plans again where they are not aligned to 16 bytes, with no larger workspace.
  virtual void bind(void* const* addresses, void* workspace) = 0;
  // Which of its ways the next run takes: it depends on the segments of an attention call. Two runs of the
  // same choice enqueue the same work, so that a captured one stands for both. Makes the way ready. Throws
  // when the call was not bound.
  virtual std::uint64_t choice() = 0;
  // What the next run enqueues, the way it would take now. Throws when the call was not bound.
  virtual mlg_work work() = 0;
  virtual void run() = 0;
};

// Throws std::runtime_error when the call does not fit the kernel or does not compile. The device and the
// library must outlive the call, and so must `compiled`, which takes the place of the kernel's own code.
std::unique_ptr<DeviceCall> make_device_call(Device& device, AttentionLibrary& library,
                                             const mlg_kernel& kernel, const mlg_call& call,
                                             const triton::CompiledKernel* compiled);

}  // namespace mulligan::cuda
