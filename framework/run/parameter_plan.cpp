#include "framework/run/parameter_plan.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <span>
#include <unordered_map>

#include "framework/core/error.h"
#include "framework/model/elements/stages.h"
#include "framework/model/initialise.h"

namespace mulligan {
namespace {

std::size_t optimizer_index(const RunConfig& config, const std::string& name) {
  if (name == no_optimizer) return 0;
  const auto found = std::ranges::find(config.optimizers, name, &OptimizerConfig::name);
  if (found == config.optimizers.end()) {
    throw config_error("[[parameters]]: optimizer = \"{}\" names no [optimizer.NAME] table; add one.", name);
  }
  return static_cast<std::size_t>(found - config.optimizers.begin());
}

void refuse_idle_optimizers(const RunConfig& config, const std::vector<PlannedParameter>& parameters) {
  for (std::size_t i = 0; i < config.optimizers.size(); ++i) {
    const auto updated = [i](const PlannedParameter& p) { return p.trained() && p.optimizer == i; };
    if (std::ranges::any_of(parameters, updated)) continue;
    throw config_error(
        "[optimizer.{}] updates no parameter; refer to it in a row of [[parameters]] or remove it.",
        config.optimizers[i].name);
  }
}

// Weight decay alone would move it.
void refuse_inert(const ModelConfig& model, const ParameterLayout& layout, const ParameterRow& row) {
  if (!layout.trained || !is_inert(model, layout.spec.name)) return;
  throw config_error(
      "{}: the row with match = \"{}\" gives '{}' the optimizer \"{}\", but no loss "
      "of training depends on it; put a row for it with optimizer = \"{}\" above.",
      row.origin.text(), row.match, layout.spec.name, row.optimizer, no_optimizer);
}

// Throws config_error for a glob that names none.
void exclude_from_average(const EmaConfig& ema, std::vector<PlannedParameter>& parameters) {
  for (const std::string& glob : ema.exclude) {
    bool matched = false;
    for (PlannedParameter& parameter : parameters) {
      if (fnmatch(glob.c_str(), parameter.name().c_str(), 0) != 0) continue;
      matched = true;
      parameter.averaged = false;
    }
    if (matched) continue;
    throw config_error(
        "[ema]: exclude has \"{}\", which matches no parameter; 'mulligan train --dry-run' lists their names.",
        glob);
  }
}

// Those that one rank updates: the largest first, by the work of a product of a matrix with its transpose.
void deal_to_ranks(std::vector<PlannedParameter>& parameters) {
  std::vector<PlannedParameter*> dealt;
  for (PlannedParameter& parameter : parameters) {
    if (parameter.communication == Communication::owner) dealt.push_back(&parameter);
  }
  const auto work = [](const PlannedParameter* parameter) {
    const TensorType& type = parameter->layout.spec.type;
    const auto dims = std::span(type.dims).first(static_cast<std::size_t>(type.rank));
    return static_cast<double>(type.elements()) *
           static_cast<double>(dims.size() < 2 ? 1 : std::min(dims.back(), dims[dims.size() - 2]));
  };
  std::ranges::stable_sort(dealt, std::ranges::greater(), work);
  for (std::size_t i = 0; i < dealt.size(); ++i) dealt[i]->turn = static_cast<std::int64_t>(i);
}

}  // namespace

ComputeTypes compute_types(const Phase& phase) {
  const DType compute = phase.compute_dtype;
  if (phase.layercast == LayerCast::off) return compute;
  return {compute, phase.layercast == LayerCast::bf16 ? MLG_BF16 : MLG_F16};
}

ComputeTypes scored_types(const RunConfig& config) {
  return compute_types(config.phases.back());
}

std::vector<PlannedParameter> with_compute_dtype(std::vector<PlannedParameter> parameters,
                                                 ComputeTypes compute) {
  for (PlannedParameter& parameter : parameters) {
    parameter.layout.compute = compute.of(parameter.layout.spec);
  }
  return parameters;
}

bool PlannedParameter::is_cut(int world_size) const {
  return world_size > 1 && communication == Communication::sharded;
}

// Dealt to and fro, so that a rank which gets the largest of one round gets the smallest of the next.
int PlannedParameter::owner(int world_size) const {
  if (world_size == 1 || communication != Communication::owner) return everybody;
  const std::int64_t round = turn / world_size, place = turn % world_size;
  return static_cast<int>(round % 2 == 0 ? place : world_size - 1 - place);
}

TensorType PlannedParameter::updated_type(int world_size) const {
  TensorType type = layout.spec.type;
  if (is_cut(world_size)) type.dims[0] = (type.dims[0] + world_size - 1) / world_size;
  return type;
}

std::string PlannedParameter::updated_master(int world_size) const {
  return is_cut(world_size) ? fmt::format("slice/{}", name()) : master_name(name());
}

std::string PlannedParameter::updated_gradient(int world_size) const {
  return is_cut(world_size) ? fmt::format("slice_gradient/{}", name()) : gradient_name(name());
}

std::vector<PlannedParameter> plan_parameters(const RunConfig& config) {
  const std::vector<ParameterSpec> specs = model_parameters(config.model);
  std::vector<std::string> names;
  for (const ParameterSpec& spec : specs) names.push_back(spec.name);
  const std::vector<std::size_t> rows = resolve_parameter_table(names, config.parameters);

  std::unordered_map<std::string, DType> masters;
  for (std::size_t i = 0; i < names.size(); ++i) {
    masters[names[i]] = config.parameters[rows[i]].master_dtype;
  }
  std::vector<PlannedParameter> planned;
  std::vector<ParameterLayout> layouts =
      parameter_layouts(config.model, compute_types(config.phases.front()), masters);
  apply_initial_rows(config.model, config.init.values, layouts);
  for (ParameterLayout& layout : layouts) {
    const ParameterRow& row = config.parameters[rows[planned.size()]];
    layout.trained = row.optimizer != no_optimizer;
    refuse_inert(config.model, layout, row);
    planned.push_back({std::move(layout), optimizer_index(config, row.optimizer), row.lr_multiplier,
                       row.weight_decay_multiplier, row.communication, row.communication_dtype});
    if (config.parallel.strategy == ParallelStrategy::ddp || !planned.back().trained()) {
      planned.back().communication = Communication::replicated;
      planned.back().communication_dtype = MLG_F32;
    }
  }
  refuse_idle_optimizers(config, planned);
  exclude_from_average(config.ema, planned);
  deal_to_ranks(planned);
  return planned;
}

std::vector<ParameterLayout> layouts_of(const std::vector<PlannedParameter>& parameters) {
  std::vector<ParameterLayout> layouts;
  for (const PlannedParameter& parameter : parameters) layouts.push_back(parameter.layout);
  return layouts;
}

}  // namespace mulligan
