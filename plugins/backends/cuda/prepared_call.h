// A kernel call of the cuda backend: the launches that its kernel planned, or a matrix product.
#pragma once

#include <mulligan/backend.h>

#include <memory>
#include <vector>

#include "plugins/backends/common/call_arguments.h"
#include "plugins/backends/cuda/attention/attention_call.h"
#include "plugins/backends/cuda/device.h"
#include "plugins/backends/cuda/launch_steps.h"
#include "plugins/backends/cuda/triton/compiled_kernel.h"

namespace mulligan::cuda {

class PreparedCall {
 public:
  // Throws std::runtime_error when the call does not fit the kernel or does not compile. The device and the
  // library must outlive it.
  // `compiled` takes the place of the kernel's own code; it must outlive this object, too.
  PreparedCall(Device& device, AttentionLibrary& library, const mlg_kernel& kernel, const mlg_call& call,
               const triton::CompiledKernel* compiled = nullptr);
  PreparedCall(const PreparedCall&) = delete;
  PreparedCall& operator=(const PreparedCall&) = delete;

  std::size_t workspace_bytes() const { return workspace_bytes_; }
  // Plans again for addresses that are not aligned to 16 bytes, whose workspace must not be larger.
  void bind(void* const* addresses, void* workspace);
  // Which of its ways the next run takes: it depends on the segments of an attention call. Two runs of the
  // same choice enqueue the same work, so that a captured one stands for both. Makes the way ready.
  std::uint64_t choice();
  void run();

 private:
  void plan();
  void place();
  // The kernel's own plan of this call, which checks it, or that of the compiled kernel in its place.
  const mlg_cuda_plan& plan_launches(const mlg_launch& shapes);
  DeviceArgument tensor(std::uint32_t index) const;
  // `out` arguments that share no memory with an argument that is read.
  std::vector<DeviceArgument> fresh_outputs() const;

  Device& device_;
  mlg_kernel kernel_;
  backends::CallArguments arguments_;
  const triton::CompiledKernel* compiled_;
  // The kernel's mlg_cuda_plan. Owned here: a constructor that throws runs no destructor.
  std::unique_ptr<void, void (*)(void*)> state_{nullptr, nullptr};
  std::unique_ptr<triton::PlannedCall> compiled_plan_;
  std::size_t workspace_bytes_ = 0;
  void* workspace_ = nullptr;
  LaunchSteps steps_;
  bool planned_ = false;  // steps_; with attention_ only once they are needed
  std::unique_ptr<Gemm> gemm_;
  std::unique_ptr<AttentionCall> attention_;
  std::vector<DeviceArgument> outputs_;
  bool bound_ = false, planned_unaligned_ = false;
};

}  // namespace mulligan::cuda
