#include "framework/step/evaluation_weights.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/graph/graph_recorder.h"
#include "framework/step/step_graphs.h"

namespace mulligan {

std::string evaluation_name(std::string_view parameter) {
  return fmt::format("evaluation/{}", parameter);
}

std::string updated_evaluation_name(const PlannedParameter& parameter, int world_size) {
  if (parameter.is_cut(world_size)) return fmt::format("evaluation_slice/{}", parameter.name());
  return evaluation_name(parameter.name());
}

bool has_evaluation_weights(const PlannedParameter& parameter, const OptimizerGroups& groups) {
  if (!parameter.trained()) return false;
  return groups.blends() || groups.groups()[parameter.optimizer].optimizer->has_evaluation_weights();
}

bool has_evaluation_weights(const OptimizerGroups& groups) {
  return groups.blends() || std::ranges::any_of(groups.groups(), [](const OptimizerGroup& group) {
           return group.optimizer->has_evaluation_weights();
         });
}

namespace {

// What is scored of a parameter in a run that blends: its weights at rest, or where it has an average shares of
// both, rounded as the weights are.
void blend(Graph& graph, const RunConfig& config, const PlannedParameter& parameter, bool wrapped) {
  const TensorType type = parameter.layout.spec.type;
  const TensorType narrow = type.as(parameter.layout.master);
  const Value rest = graph.external(rest_tensor(parameter, wrapped), narrow),
              scored = graph.external(evaluation_name(parameter.name()), type);
  if (config.ema.decay == 0 || !config.eval.use_ema || !parameter.averaged) {
    graph.call("cast", {rest, scored});
    return;
  }
  const Value shares = graph.external(step_tensor::blend, TensorType(MLG_F32, {2})),
              wide = graph.scratch(type);
  const auto share = [&](std::int64_t index) { return graph.view(shares, index, TensorType(MLG_F32, {1})); };
  graph.call("cast", {rest, wide});
  graph.call("scale_by", {wide, share(1)});
  graph.call("cast", {graph.external(average_name(parameter.name()), type), scored});
  graph.call("scale_by", {scored, share(0)});
  graph.call("axpby", {wide, Value{}, scored}, {{"alpha", 1}, {"beta", 0}, {"accumulate_y", 1}});
  if (narrow == type) return;
  const Value rounded = graph.scratch(narrow);
  graph.call("cast", {scored, rounded});
  graph.call("cast", {rounded, scored});
}

}  // namespace

Graph build_evaluation_weights(const RunConfig& config, const std::vector<PlannedParameter>& parameters,
                               const OptimizerGroups& groups, int world_size) {
  Graph graph;
  for (const PlannedParameter& parameter : parameters) {
    if (groups.blends() && parameter.trained()) blend(graph, config, parameter, groups.wrapped());
  }
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
  return graph;
}

std::string saved_tensor(const PlannedParameter& parameter, const OptimizerGroups& groups, bool averaged) {
  if (averaged) return average_name(parameter.name());
  return has_evaluation_weights(parameter, groups) ? evaluation_name(parameter.name())
                                                   : master_name(parameter.name());
}

namespace {

// The copy of what is scored in the masters' place; "": kernels read that itself.
std::string scored_copy(const PlannedParameter& parameter, bool averaged) {
  if (parameter.layout.compute == MLG_F32) return {};
  return fmt::format("{}_compute/{}", averaged ? "ema" : "evaluation", parameter.name());
}

}  // namespace

std::vector<ParameterLayout> scored_layouts(const std::vector<PlannedParameter>& parameters,
                                            const OptimizerGroups& groups, bool averaged) {
  std::vector<ParameterLayout> layouts = layouts_of(parameters);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!averaged && !has_evaluation_weights(parameters[i], groups)) continue;
    layouts[i].source = scored_copy(parameters[i], averaged);
    if (layouts[i].source.empty()) layouts[i].source = saved_tensor(parameters[i], groups, averaged);
  }
  return layouts;
}

Graph build_scored_copies(const std::vector<PlannedParameter>& parameters, const OptimizerGroups& groups,
                          bool averaged) {
  Graph graph;
  for (const PlannedParameter& parameter : parameters) {
    const std::string copy = scored_copy(parameter, averaged);
    if (copy.empty() || (!averaged && !has_evaluation_weights(parameter, groups))) continue;
    const TensorType type = parameter.layout.spec.type;
    graph.call("cast", {graph.external(saved_tensor(parameter, groups, averaged), type),
                        graph.external(copy, type.as(parameter.layout.compute))});
  }
  return graph;
}

}  // namespace mulligan
