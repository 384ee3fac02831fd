// LoadedModel: a model on a backend with weights that were made elsewhere, for what scores, quantises
// or adapts it.
#pragma once

#include <functional>
#include <vector>

#include "framework/config/run_config.h"
#include "framework/graph/tensor_store.h"
#include "framework/model/parameter_values.h"
#include "framework/run/parameter_store.h"

namespace mulligan {

// Gives a model its weights: fills the masters of `layouts`, which exist in the store.
using WeightLoader = std::function<void(TensorStore& store, const std::vector<ParameterLayout>& layouts)>;

class LoadedModel {
 public:
  enum class Masters {
    fp32,
    as_trained,  // of the dtypes of [[parameters]]
    // For what only computes with them: f32, but projections that are stored narrower (LayerCast) are held as
    // they are read, without a copy, 2 bytes an element.
    scored,
  };
  // Makes the masters, not their values. `backend` must outlive this object.
  LoadedModel(Backend& backend, const RunConfig& config, Masters masters = Masters::fp32);

  TensorStore& store() { return store_; }
  const std::vector<ParameterLayout>& layouts() const { return layouts_; }
  DType compute() const { return compute_; }  // of the copies that kernels read

  // Fills the masters, then brings the copies up to date.
  void load(const WeightLoader& loader);

 private:
  TensorStore store_;
  DType compute_;
  std::vector<ParameterLayout> layouts_;
};

}  // namespace mulligan
