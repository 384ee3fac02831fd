// A kernel call of the cuda backend: the launches that its kernel planned, or a matrix product.
#pragma once

#include <mulligan/backend.h>

#include <memory>
#include <vector>

#include "plugins/backends/common/call_arguments.h"
#include "plugins/backends/cuda/device.h"
#include "plugins/backends/cuda/triton/compiled_kernel.h"

namespace mulligan::cuda {

class PreparedCall {
 public:
  // Throws std::runtime_error when the call does not fit the kernel or does not compile. The device must
  // outlive it.
  // `compiled` takes the place of the kernel's own code; it must outlive this object, too.
  PreparedCall(Device& device, const mlg_kernel& kernel, const mlg_call& call,
               const triton::CompiledKernel* compiled = nullptr);
  ~PreparedCall();
  PreparedCall(const PreparedCall&) = delete;
  PreparedCall& operator=(const PreparedCall&) = delete;

  std::size_t workspace_bytes() const { return workspace_bytes_; }
  // Plans again for addresses that are not aligned to 16 bytes, whose workspace must not be larger.
  void bind(void* const* addresses, void* workspace);
  void run();

 private:
  struct Step {
    std::unique_ptr<Function> function;
    Grid grid{};
    std::vector<DeviceArgument> arguments;
    const mlg_cuda_launch* launch = nullptr;
  };
  void plan();
  // The kernel's own plan of this call, which checks it, or that of the compiled kernel in its place.
  const mlg_cuda_plan& plan_launches(const mlg_launch& shapes);
  void place_arguments(Step& step);
  DeviceArgument tensor(std::uint32_t index) const;
  // `out` arguments that share no memory with an argument that is read.
  std::vector<DeviceArgument> fresh_outputs() const;

  Device& device_;
  mlg_kernel kernel_;
  backends::CallArguments arguments_;
  const triton::CompiledKernel* compiled_;
  void* state_ = nullptr;  // the kernel's mlg_cuda_plan
  std::unique_ptr<triton::PlannedCall> compiled_plan_;
  std::size_t workspace_bytes_ = 0;
  void* workspace_ = nullptr;
  std::vector<Step> steps_;
  std::unique_ptr<Gemm> gemm_;
  std::vector<DeviceArgument> outputs_;
  bool bound_ = false, planned_unaligned_ = false;
};

}  // namespace mulligan::cuda
