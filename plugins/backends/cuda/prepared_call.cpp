#include "plugins/backends/cuda/prepared_call.h"

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "plugins/backends/cuda/kernels/matmul.h"

namespace mulligan::cuda {
namespace {

using backends::Direction;

std::size_t bytes_of(const mlg_tensor& tensor) {
  static constexpr std::size_t sizes[] = {4, 2, 2, 8, 4, 8, 2, 1, 1};  // by mlg_dtype
  if (tensor.dtype == MLG_ABSENT) return 0;
  std::size_t bytes = sizes[tensor.dtype];
  for (const std::int64_t extent : tensor.shape) bytes *= static_cast<std::size_t>(extent);
  return bytes;
}

bool overlap(const DeviceArgument& a, const DeviceArgument& b) {
  const char *first = static_cast<const char*>(a.address), *second = static_cast<const char*>(b.address);
  return first < second + b.bytes && second < first + a.bytes;
}

}  // namespace

PreparedCall::PreparedCall(Device& device, const mlg_kernel& kernel, const mlg_call& call,
                           const triton::CompiledKernel* compiled)
    : device_(device), kernel_(kernel), arguments_(kernel, call), compiled_(compiled) {
  if (is_matmul(kernel_) && !compiled_) {
    gemm_ = device_.gemm(gemm_shape(kernel_, arguments_.launch()));
    workspace_bytes_ = gemm_->workspace_bytes();
  } else {
    plan();
  }
}

PreparedCall::~PreparedCall() {
  if (state_) kernel_.release(state_);
}

const mlg_cuda_plan& PreparedCall::plan_launches(const mlg_launch& shapes) {
  std::size_t workspace_bytes = 0;
  if (is_matmul(kernel_)) {
    gemm_shape(kernel_, shapes);
  } else {
    mlg_preparation preparation{};
    if (const mlg_error error = kernel_.prepare(&shapes, &preparation)) throw std::runtime_error(error);
    if (state_) kernel_.release(state_);
    state_ = preparation.state;
    workspace_bytes = preparation.workspace_bytes;
  }
  if (compiled_) {
    compiled_plan_ = compiled_->plan(shapes);
    workspace_bytes = compiled_plan_->workspace_bytes;
  }
  workspace_bytes_ = std::max(workspace_bytes_, workspace_bytes);
  return compiled_ ? compiled_plan_->plan : *static_cast<const mlg_cuda_plan*>(state_);
}

void PreparedCall::plan() {
  const mlg_cuda_plan& plan = plan_launches(arguments_.launch());
  steps_.clear();
  for (std::uint32_t i = 0; i < plan.launch_count; ++i) {
    Step& step = steps_.emplace_back();
    step.launch = &plan.launches[i];
    std::copy_n(step.launch->grid, 3, step.grid.blocks);
    std::copy_n(step.launch->block, 3, step.grid.threads);
    step.grid.shared_bytes = step.launch->shared_bytes;
    step.function = device_.load({kernel_.name, kernel_.source, step.launch, compiled_});
  }
}

DeviceArgument PreparedCall::tensor(std::uint32_t index) const {
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

void PreparedCall::place_arguments(Step& step) {
  step.arguments.clear();
  for (std::uint32_t i = 0; i < step.launch->argument_count; ++i) {
    const mlg_cuda_argument& wanted = step.launch->arguments[i];
    DeviceArgument argument;
    if (wanted.kind == MLG_CUDA_TENSOR) argument = tensor(wanted.index);
    if (wanted.kind == MLG_CUDA_WORKSPACE && wanted.bytes > 0) {
      argument.address = static_cast<char*>(workspace_) + wanted.offset;
      argument.bytes = wanted.bytes;
      argument.name = "the workspace";
    }
    argument.value = wanted;
    step.arguments.push_back(argument);
  }
}

std::vector<DeviceArgument> PreparedCall::fresh_outputs() const {
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

void PreparedCall::bind(void* const* addresses, void* workspace) {
  const std::size_t planned = workspace_bytes_;
  arguments_.bind(addresses, workspace, workspace_bytes_);
  workspace_ = workspace;
  if (!gemm_) {
    const bool unaligned =
        std::any_of(arguments_.tensors().begin(), arguments_.tensors().end(),
                    [](const auto& t) { return reinterpret_cast<std::uintptr_t>(t.data) % 16 != 0; });
    if (unaligned || planned_unaligned_) plan();
    planned_unaligned_ = unaligned;
    if (workspace_bytes_ > planned) {
      throw std::runtime_error(std::string("kernel ") + kernel_.name +
                               " needs more workspace for addresses that are not aligned to 16 bytes");
    }
    for (Step& step : steps_) place_arguments(step);
  }
  outputs_ = fresh_outputs();
  bound_ = true;
}

void PreparedCall::run() {
  if (!bound_) {
    throw std::runtime_error(std::string("the kernel call '") + kernel_.name +
                             "' was run before it was bound");
  }
  for (const DeviceArgument& output : outputs_) device_.mark_unwritten(output);
  if (gemm_) {
    gemm_->run(tensor(0), tensor(1), tensor(2), workspace_);
    return;
  }
  DeviceArgument workspace;
  workspace.address = workspace_;
  workspace.bytes = workspace_bytes_;
  if (workspace.bytes > 0) device_.mark_unwritten(workspace);
  for (Step& step : steps_) device_.launch(*step.function, step.grid, step.arguments);
  for (const DeviceArgument& output : outputs_) device_.require_written(output);
  if (workspace.bytes > 0) device_.mark_written(workspace);
}

}  // namespace mulligan::cuda
