#include "framework/step/evaluation_weights.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/core/error.h"
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

bool has_evaluation_weights(const PlannedParameter& parameter, const OptimizerGroups& groups) {
  return parameter.trained() && groups.groups()[parameter.optimizer].optimizer->has_evaluation_weights();
}

bool has_evaluation_weights(const OptimizerGroups& groups) {
  return std::ranges::any_of(
      groups.groups(), [](const OptimizerGroup& group) { return group.optimizer->has_evaluation_weights(); });
}

Graph build_evaluation_weights(const std::vector<PlannedParameter>& parameters, const OptimizerGroups& groups,
                               int world_size) {
  Graph graph;
  for (const OptimizerGroup& group : groups.groups()) {
    if (!group.optimizer->has_evaluation_weights()) continue;
    std::vector<mlg_parameter> rows;
    std::vector<mlg_value> evaluation;
    for (const std::size_t index : group.parameters) {
      const PlannedParameter& parameter = parameters[index];
      const TensorType type = parameter.layout.spec.type;
      if (parameter.updated_type(world_size) != type) {
        throw config_error(
            "[[parameters]]: '{}' is cut over the ranks (communication = \"sharded\"), but {} has evaluation "
            "weights, which need whole parameters; set communication = \"replicated\".",
            parameter.name(), group.optimizer->plugin().description());
      }
      rows.push_back({parameter.name().c_str(),
                      graph.external(master_name(parameter.name()), type.as(parameter.layout.master)).id, 0,
                      parameter.lr_multiplier, parameter.weight_decay_multiplier});
      evaluation.push_back(graph.external(evaluation_name(parameter.name()), type).id);
    }
    GraphRecorder recorder(graph, fmt::format("optimizer/{}", group.name));
    group.optimizer->record_evaluation(*recorder.table(), rows, evaluation);
  }
  for (const PlannedParameter& parameter : parameters) {
    if (!has_evaluation_weights(parameter, groups) || !is_copied(parameter)) continue;
    const TensorType type = parameter.layout.spec.type;
    graph.call("cast",
               {graph.external(evaluation_name(parameter.name()), type),
                graph.external(compute_copy_name(parameter.name()), type.as(parameter.layout.compute))});
  }
  return graph;
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
