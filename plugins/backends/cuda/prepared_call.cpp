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

PreparedCall::PreparedCall(Device& device, AttentionLibrary& library, const mlg_kernel& kernel,
                           const mlg_call& call, const triton::CompiledKernel* compiled)
    : device_(device), kernel_(kernel), arguments_(kernel, call), compiled_(compiled) {
  if (is_matmul(kernel_) && !compiled_) {
    gemm_ = device_.gemm(gemm_shape(kernel_, arguments_.launch()));
    workspace_bytes_ = gemm_->workspace_bytes();
    return;
  }
  const mlg_launch shapes = arguments_.launch();
  plan_launches(shapes);
  if (!compiled_) attention_ = AttentionCall::make(library, kernel_, arguments_);
  if (attention_) {
    workspace_bytes_ = std::max(workspace_bytes_, attention_->workspace_bytes());
    if (device_.facts().computes) return;  // the own kernel is loaded when it is needed
    attention_->load();
  }
  plan();
}

const mlg_cuda_plan& PreparedCall::plan_launches(const mlg_launch& shapes) {
  std::size_t workspace_bytes = 0;
  if (is_matmul(kernel_)) {
    gemm_shape(kernel_, shapes);
  } else {
    mlg_preparation preparation{};
    if (const mlg_error error = kernel_.prepare(&shapes, &preparation)) throw std::runtime_error(error);
    state_ = {preparation.state, kernel_.release};
    workspace_bytes = preparation.workspace_bytes;
  }
  if (compiled_) {
    compiled_plan_ = compiled_->plan(shapes);
    workspace_bytes = compiled_plan_->workspace_bytes;
  }
  workspace_bytes_ = std::max(workspace_bytes_, workspace_bytes);
  return compiled_ ? compiled_plan_->plan : *static_cast<const mlg_cuda_plan*>(state_.get());
}

void PreparedCall::plan() {
  const mlg_cuda_plan& plan = plan_launches(arguments_.launch());
  steps_ = LaunchSteps(device_, kernel_.name, kernel_.source, plan, compiled_);
  planned_ = true;
}

void PreparedCall::place() {
  steps_.place([this](std::uint32_t index) { return tensor(index); }, workspace_);
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
    if (unaligned) attention_.reset();  // a library's attention wants aligned tensors
    if (unaligned || planned_unaligned_ || (!attention_ && !planned_)) plan();
    planned_unaligned_ = unaligned;
    if (workspace_bytes_ > planned) {
      throw std::runtime_error(std::string("kernel ") + kernel_.name +
                               " needs more workspace for addresses that are not aligned to 16 bytes");
    }
    if (planned_) place();
    if (attention_) attention_->bind([this](std::uint32_t index) { return tensor(index); }, workspace_);
  }
  outputs_ = fresh_outputs();
  bound_ = true;
}

std::uint64_t PreparedCall::choice() {
  if (!bound_) {
    throw std::runtime_error(std::string("the kernel call '") + kernel_.name +
                             "' was run before it was bound");
  }
  const std::uint64_t choice = attention_ ? attention_->choose() : 0;
  if (choice == 0 && !gemm_ && !planned_) {
    plan();
    place();
  }
  return choice;
}

void PreparedCall::run() {
  const std::uint64_t choice = this->choice();
  for (const DeviceArgument& output : outputs_) device_.mark_unwritten(output);
  if (gemm_) {
    gemm_->run(tensor(0), tensor(1), tensor(2), workspace_);
    return;
  }
  DeviceArgument workspace;
  workspace.address = workspace_;
  workspace.bytes = workspace_bytes_;
  if (workspace.bytes > 0) device_.mark_unwritten(workspace);
  if (choice == 0) {
    steps_.run();
  } else {
    attention_->run(choice);
  }
  for (const DeviceArgument& output : outputs_) device_.require_written(output);
  if (workspace.bytes > 0) device_.mark_written(workspace);
}

}  // namespace mulligan::cuda
