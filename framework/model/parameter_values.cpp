#include "framework/model/parameter_values.h"

#include <fmt/format.h>

#include <stdexcept>

namespace mulligan {

std::string master_name(std::string_view parameter) {
  return fmt::format("master/{}", parameter);
}
std::string compute_name(std::string_view parameter) {
  return fmt::format("compute/{}", parameter);
}
std::string gradient_name(std::string_view parameter) {
  return fmt::format("gradient/{}", parameter);
}

std::vector<ParameterLayout> parameter_layouts(const ModelConfig& model, ComputeTypes types,
                                               const std::unordered_map<std::string, DType>& master_dtypes) {
  std::vector<ParameterLayout> layouts;
  for (ParameterSpec& spec : model_parameters(model)) {
    const auto master = master_dtypes.find(spec.name);
    const DType compute = types.of(spec);
    layouts.push_back(
        {std::move(spec), master == master_dtypes.end() ? MLG_F32 : master->second, compute, {}, true});
  }
  return layouts;
}

ParameterValues::ParameterValues(Tape& tape, const std::vector<ParameterLayout>& layouts, bool trainable)
    : tape_(tape), trainable_(trainable) {
  for (const ParameterLayout& layout : layouts) layouts_.emplace(layout.spec.name, layout);
}

Value ParameterValues::operator()(std::string_view name) const {
  const auto found = layouts_.find(std::string(name));
  if (found == layouts_.end()) throw std::logic_error(fmt::format("the model has no parameter '{}'", name));
  const ParameterLayout& layout = found->second;
  Graph& graph = tape_.graph();
  const Value value = graph.external(layout.read_name(), layout.spec.type.as(layout.compute));
  if (trainable_ && layout.trained) tape_.watch(value, graph.external(gradient_name(name), layout.spec.type));
  return value;
}

void build_refresh_copies(Graph& graph, const std::vector<ParameterLayout>& layouts) {
  for (const ParameterLayout& layout : layouts) {
    if (!layout.has_copy()) continue;
    graph.call("cast", {graph.external(master_name(layout.spec.name), layout.spec.type.as(layout.master)),
                        graph.external(compute_name(layout.spec.name), layout.spec.type.as(layout.compute))});
  }
}

}  // namespace mulligan
