#include "framework/run/loaded_model.h"

#include "framework/run/parameter_plan.h"

namespace mulligan {

namespace {

std::vector<ParameterLayout> layouts_in(const RunConfig& config, LoadedModel::Masters masters) {
  const ComputeTypes types = scored_types(config);
  if (masters == LoadedModel::Masters::as_trained)
    return layouts_of(with_compute_dtype(plan_parameters(config), types));
  std::vector<ParameterLayout> layouts = parameter_layouts(config.model, types);
  if (masters == LoadedModel::Masters::scored && types.projections != types.activations) {
    for (ParameterLayout& layout : layouts) {
      if (layout.spec.projection) layout.master = layout.compute;
    }
  }
  return layouts;
}

}  // namespace

LoadedModel::LoadedModel(Backend& backend, const RunConfig& config, Masters masters)
    : store_(backend), compute_(scored_types(config).activations), layouts_(layouts_in(config, masters)) {
  for (const ParameterLayout& layout : layouts_)
    store_.create(master_name(layout.spec.name), layout.spec.type.as(layout.master));
}

void LoadedModel::load(const WeightLoader& loader) {
  loader(store_, layouts_);
  refresh_copies(store_, layouts_);
}

}  // namespace mulligan
