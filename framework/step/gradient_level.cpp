#include "framework/step/gradient_level.h"

#include <fmt/format.h>

#include "framework/step/step_graphs.h"

namespace mulligan {
namespace {

std::string level_name(std::size_t level, std::string_view tensor) {
  return fmt::format("gradient_tree/{}/{}", level, tensor);
}

}  // namespace

GradientLevel::GradientLevel(Backend& backend, const std::vector<PlannedParameter>& parameters,
                             TensorStore& store, std::size_t level)
    : parameters_(parameters), store_(store), level_(level) {
  const TensorType one(MLG_F64, {1});
  Graph graph;
  for (const PlannedParameter& parameter : parameters_) {
    if (!parameter.trained()) continue;
    const TensorType type = parameter.layout.spec.type;
    graph.call("axpby",
               {graph.external(level_name(level, parameter.name()), type), Value{},
                graph.external(gradient_name(parameter.name()), type)},
               {{"alpha", 1}, {"beta", 0}, {"accumulate_y", 1}});
  }
  graph.call("sum_f64", {graph.external(level_name(level, "loss_sum"), one),
                         graph.external(step_tensor::loss_sum, one)});
  store_.create_externals(graph);
  program_ = std::make_unique<Program>(backend, std::move(graph), "add a level of the gradients' tree");
}

void GradientLevel::keep() {
  for (const PlannedParameter& parameter : parameters_) {
    if (parameter.trained())
      store_.copy(level_name(level_, parameter.name()), gradient_name(parameter.name()));
  }
  store_.copy(level_name(level_, "loss_sum"), step_tensor::loss_sum);
}

}  // namespace mulligan
