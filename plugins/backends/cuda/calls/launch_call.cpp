#include "plugins/backends/cuda/calls/launch_call.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace mulligan::cuda {

LaunchCall::LaunchCall(Device& device, const mlg_kernel& kernel, const mlg_call& call,
                       const triton::CompiledKernel* compiled)
    : device_(device), kernel_(kernel), compiled_(compiled), memory_(device, kernel, call) {}

void LaunchCall::plan_anew() {
  steps_.reset();  // they point into the plan
  std::size_t workspace_bytes = 0;
  plan_ = &plan(kernel_, arguments().launch(), workspace_bytes);
  reserve(workspace_bytes);
}

void LaunchCall::reserve(std::size_t workspace_bytes) {
  workspace_bytes_ = std::max(workspace_bytes_, workspace_bytes);
}

void LaunchCall::expect() {
  for (std::uint32_t i = 0; i < plan_->launch_count; ++i)
    device_.expect({kernel_.name, kernel_.source, &plan_->launches[i]});
  expected_ = true;
}

void LaunchCall::load() {
  if (!steps_) steps_.emplace(device_, kernel_.name, kernel_.source, *plan_, compiled_);
}

void LaunchCall::bind(void* const* addresses, void* workspace) {
  const std::size_t planned = workspace_bytes_;
  memory_.bind(addresses, workspace, planned);
  const bool aligned = memory_.aligned();
  const bool planned_otherwise = !aligned || !planned_for_aligned_;
  if (planned_otherwise) plan_anew();
  if (planned_otherwise || expected_) load();
  planned_for_aligned_ = aligned;
  if (workspace_bytes_ > planned) {
    throw std::runtime_error(std::string("kernel ") + kernel_.name +
                             " needs more workspace for addresses that are not aligned to 16 bytes");
  }
  if (steps_) steps_->place([this](std::uint32_t index) { return memory_.tensor(index); }, workspace);
}

std::uint64_t LaunchCall::choice() {
  memory_.require_bound();
  if (!steps_) {
    load();
    steps_->place([this](std::uint32_t index) { return memory_.tensor(index); }, memory_.workspace());
  }
  return 0;
}

mlg_work LaunchCall::work() {
  choice();
  return {steps_->size(), 0, 0};
}

void LaunchCall::run() {
  choice();
  memory_.mark_unwritten();
  launch();
  memory_.require_written();
}

}  // namespace mulligan::cuda
