#include "framework/step/evaluation_weights.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/graph/graph_recorder.h"
#include "framework/step/step_graphs.h"

namespace mulligan {
namespace {

std::string compute_copy_name(std::string_view parameter) {
  return fmt::format("evaluation_compute/{}", parameter);
}

bool is_copied(const PlannedParameter& parameter) {
  return parameter.layout.compute != MLG_F32;
}

}  // namespace

std::string evaluation_name(std::string_view parameter) {
  return fmt::format("evaluation/{}", parameter);
}

std::string updated_evaluation_name(const PlannedParameter& parameter, int world_size) {
  if (parameter.is_cut(world_size)) return fmt::format("evaluation_slice/{}", parameter.name());
  return evaluation_name(parameter.name());
}

bool has_evaluation_weights(const PlannedParameter& parameter, const OptimizerGroups& groups) {
  return parameter.trained() && groups.groups()[parameter.optimizer].optimizer->has_evaluation_weights();
}

bool has_evaluation_weights(const OptimizerGroups& groups) {
  return std::ranges::any_of(
      groups.groups(), [](const OptimizerGroup& group) { return group.optimizer->has_evaluation_weights(); });
}

EvaluationGraph build_evaluation_weights(const std::vector<PlannedParameter>& parameters,
                                         const OptimizerGroups& groups, int world_size) {
  EvaluationGraph built;
  Graph& graph = built.graph;
  for (const OptimizerGroup& group : groups.groups()) {
    if (!group.optimizer->has_evaluation_weights()) continue;
    std::vector<mlg_parameter> rows;
    std::vector<mlg_value> evaluation;
    for (const std::size_t index : group.parameters) {
      const PlannedParameter& parameter = parameters[index];
      const TensorType type = parameter.updated_type(world_size);
      const Value master =
          graph.external(parameter.updated_master(world_size), type.as(parameter.layout.master));
      rows.push_back({parameter.name().c_str(), master.id, 0, parameter.lr_multiplier,
                      parameter.weight_decay_multiplier});
      evaluation.push_back(graph.external(updated_evaluation_name(parameter, world_size), type).id);
    }
    GraphRecorder recorder(graph, fmt::format("optimizer/{}", group.name));
    group.optimizer->record_evaluation(*recorder.table(), rows, evaluation);
  }
  built.copies = graph.calls().size();
  for (const PlannedParameter& parameter : parameters) {
    if (!has_evaluation_weights(parameter, groups) || !is_copied(parameter)) continue;
    const TensorType type = parameter.layout.spec.type;
    graph.call("cast",
               {graph.external(evaluation_name(parameter.name()), type),
                graph.external(compute_copy_name(parameter.name()), type.as(parameter.layout.compute))});
  }
  return built;
}

std::vector<ParameterLayout> evaluation_layouts(const std::vector<PlannedParameter>& parameters,
                                                const OptimizerGroups& groups) {
  std::vector<ParameterLayout> layouts = layouts_of(parameters);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!has_evaluation_weights(parameters[i], groups)) continue;
    layouts[i].source = is_copied(parameters[i]) ? compute_copy_name(parameters[i].name())
                                                 : evaluation_name(parameters[i].name());
  }
  return layouts;
}

std::string saved_tensor(const PlannedParameter& parameter, const OptimizerGroups& groups, bool averaged) {
  if (averaged) return average_name(parameter.name());
  return has_evaluation_weights(parameter, groups) ? evaluation_name(parameter.name())
                                                   : master_name(parameter.name());
}

}  // namespace mulligan
