#include "framework/run/loaded_model.h"

#include "framework/graph/program.h"
#include "framework/run/parameter_plan.h"

namespace mulligan {

LoadedModel::LoadedModel(Backend& backend, const RunConfig& config, Masters masters)
    : store_(backend),
      compute_(to_dtype(scored_dtype(config))),
      layouts_(masters == Masters::fp32 ? parameter_layouts(config.model, compute_)
                                        : layouts_of(with_compute_dtype(plan_parameters(config), compute_))) {
  for (const ParameterLayout& layout : layouts_)
    store_.create(master_name(layout.spec.name), layout.spec.type.as(layout.master));
}

void LoadedModel::load(const WeightLoader& loader) {
  loader(store_, layouts_);
  refresh_copies(store_, layouts_);
}

void refresh_copies(TensorStore& store, const std::vector<ParameterLayout>& layouts) {
  Graph copies;
  build_refresh_copies(copies, layouts);
  store.create_externals(copies);
  Program refresh(store.backend(), std::move(copies), "refresh");
  SharedArena arena(store.backend());
  arena.bind({&refresh}, store);
  refresh.run();
  store.backend().synchronize();
}

}  // namespace mulligan
