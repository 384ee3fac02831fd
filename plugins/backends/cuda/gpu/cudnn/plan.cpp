#include "plugins/backends/cuda/gpu/cudnn/plan.h"

#include <stdexcept>
#include <utility>

namespace mulligan::cuda::cudnn {
namespace {

std::vector<Descriptor> proposals(const Functions& functions, const Target& target, const Descriptor& graph) {
  Descriptor heuristics(functions, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_HEUR_MODE_A);
  if (target.device) heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *target.device);
  heuristics.finalize();
  return heuristics.held(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
}

}  // namespace

Descriptor described_device(const Functions& functions, const std::string& json) {
  Descriptor device(functions, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  device.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, std::span<const char>(json));
  device.finalize();
  return device;
}

Plan::Plan(Descriptor plan, std::size_t workspace_bytes)
    : plan_(std::move(plan)), workspace_bytes_(workspace_bytes) {}

std::optional<Plan> make_plan(const Functions& functions, const Target& target, const Descriptor& graph,
                              std::string& reason) {
  reason = "it proposes no engine";
  try {
    for (const Descriptor& engine : proposals(functions, target, graph)) {
      try {
        Descriptor plan(functions, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
        plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, engine);
        if (target.handle) plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, target.handle);
        plan.finalize();
        const std::int64_t bytes = plan.number(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
        return Plan(std::move(plan), static_cast<std::size_t>(bytes));
      } catch (const std::runtime_error& refused) {
        reason = refused.what();  // the next engine may take it
      }
    }
  } catch (const std::runtime_error& refused) {
    reason = refused.what();
  }
  return std::nullopt;
}

}  // namespace mulligan::cuda::cudnn
