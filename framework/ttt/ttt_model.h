// The trained model as test-time training starts from it: f32 masters, whatever the training run's were.
#pragma once

#include <vector>

#include "framework/config/run_config.h"
#include "framework/train/parameter_plan.h"
#include "framework/ttt/base_model.h"

namespace mulligan {

class TttModel {
 public:
  // Makes the masters, not their values. `backend` and `config` must outlive this object.
  TttModel(Backend& backend, const RunConfig& config)
      : store_(backend),
        layouts_(parameter_layouts(config.model, to_dtype(config.train.compute_dtype))),
        base_{store_, config.model, layouts_, to_dtype(config.train.compute_dtype),
              config.model.loop.extra_passes > 0} {
    for (const ParameterLayout& layout : layouts_)
      store_.create(master_name(layout.spec.name), layout.spec.type);
  }

  TensorStore& store() { return store_; }
  const std::vector<ParameterLayout>& layouts() const { return layouts_; }
  const BaseModel& base() const { return base_; }

 private:
  TensorStore store_;
  std::vector<ParameterLayout> layouts_;
  BaseModel base_;
};

}  // namespace mulligan
