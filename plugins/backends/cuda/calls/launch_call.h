// What the calls have in common that become launches of functions: planned, loaded, placed.
#pragma once

#include <optional>

#include "plugins/backends/cuda/calls/call_memory.h"
#include "plugins/backends/cuda/calls/device_call.h"
#include "plugins/backends/cuda/launch_steps.h"

namespace mulligan::cuda {

class LaunchCall : public DeviceCall {
 public:
  std::size_t workspace_bytes() const final { return workspace_bytes_; }
  void bind(void* const* addresses, void* workspace) final;
  std::uint64_t choice() final;
  mlg_work work() final;
  void run() final;
  // What run() launches, without its notes on memory. After choice().
  void launch() { steps_->run(); }

  const CallMemory& memory() const { return memory_; }
  const backends::CallArguments& arguments() const { return memory_.arguments(); }
  // The functions of the plan will be needed: they are loaded when the call is bound, and begin to be made
  // now. Without it a call that is bound to aligned addresses loads nothing before it runs.
  void expect();
  // Loads the functions of the plan, unless they are.
  void load();
  // Asks for a workspace of at least so many bytes.
  void reserve(std::size_t workspace_bytes);

 protected:
  // Derived classes then call plan_anew(). `compiled` takes the place of the kernel's source.
  LaunchCall(Device& device, const mlg_kernel& kernel, const mlg_call& call,
             const triton::CompiledKernel* compiled = nullptr);
  // What to launch for the call, whose addresses may be known; the workspace it needs in `workspace_bytes`.
  // Checks the call. The plan lives until the next one is made.
  virtual const mlg_cuda_plan& plan(const mlg_kernel& kernel, const mlg_launch& call,
                                    std::size_t& workspace_bytes) = 0;
  void plan_anew();

 private:
  Device& device_;
  mlg_kernel kernel_;
  const triton::CompiledKernel* compiled_;
  CallMemory memory_;
  const mlg_cuda_plan* plan_ = nullptr;
  std::size_t workspace_bytes_ = 0;
  std::optional<LaunchSteps> steps_;
  bool planned_for_aligned_ = true, expected_ = false;
};

}  // namespace mulligan::cuda
