// Which optimiser, precision and communication each parameter of a run gets: the parameter table applied
// to the model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "framework/config/run_config.h"
#include "framework/model/parameter_values.h"

namespace mulligan {

struct PlannedParameter {
  ParameterLayout layout;
  std::size_t optimizer = 0;  // index into RunConfig::optimizers; without meaning where it is not trained
  double lr_multiplier = 1;
  double weight_decay_multiplier = 1;
  Communication communication = Communication::replicated;
  DType communication_dtype = MLG_F32;  // in which gradients travel between ranks
  bool averaged = true;                 // has an average where the run keeps any: ema.exclude
  std::int64_t turn = 0;                // of Communication::owner: when it is dealt to a rank

  const std::string& name() const { return layout.spec.name; }
  bool trained() const { return layout.trained; }
  // Whether each of `world_size` ranks updates a slice of it, along the first dimension.
  bool is_cut(int world_size) const;
  // The rank that alone updates it; `everybody` where all do, the whole or slices of it.
  static constexpr int everybody = -1;
  int owner(int world_size) const;
  // Whether a rank updates any of it.
  bool is_updated_by(int rank, int world_size) const {
    return owner(world_size) == everybody || owner(world_size) == rank;
  }
  // Whether ranks must get from others what these updated.
  bool is_gathered(int world_size) const { return is_cut(world_size) || owner(world_size) != everybody; }
  // What one rank updates: the whole parameter or its slice.
  TensorType updated_type(int world_size) const;
  // The tensors that the optimiser updates and reads: the master and gradient themselves unless they are cut.
  std::string updated_master(int world_size) const;
  std::string updated_gradient(int world_size) const;
};

// What a phase computes in, and what weights are scored in.
ComputeTypes compute_types(const Phase& phase);
ComputeTypes scored_types(const RunConfig& config);

// The same parameters as kernels of other compute dtypes read them.
std::vector<PlannedParameter> with_compute_dtype(std::vector<PlannedParameter> parameters,
                                                 ComputeTypes compute);

// In the model's order, with the compute dtypes of the first phase. Throws config_error when a parameter is
// matched by no row, a row takes none, or an [optimizer.NAME] updates nothing.
std::vector<PlannedParameter> plan_parameters(const RunConfig& config);

std::vector<ParameterLayout> layouts_of(const std::vector<PlannedParameter>& parameters);

}  // namespace mulligan
