// Optimizer: an optimiser of one parameter group made by a plugin; contracts of the
// calls in <mulligan/optimizer.h>.
#pragma once

#include <mulligan/optimizer.h>

#include <span>

#include "framework/plugin/plugin_instance.h"

namespace mulligan {

// `step` is the update's number, from 1; `lr` is the scheduled learning rate.
inline mlg_step plain_step(std::int64_t step, double lr) {
  return {step, lr, 0, 0.0, 1.0, 1.0};
}

class Optimizer : public PluginInstance<mlg_optimizer_table> {
 public:
  using PluginInstance::PluginInstance;

  // How many f32 numbers scalars() supplies.
  std::uint32_t scalar_count() const { return table().scalar_count(instance()); }

  // Whether an update can scale gradients and keep averages and copies in its own pass: `update` of record().
  bool has_fused_update() const { return table().fused_update == 1; }
  // Records one update of all parameters; `scalars` is an f32 [scalar_count] value, 0 when scalar_count is 0. `update` null: no
  // further work.
  void record(const mlg_recorder& recorder, std::span<const mlg_parameter> parameters, mlg_value scalars,
              const mlg_update* update = nullptr) const {
    call(table().record, &recorder, parameters.data(), static_cast<std::uint32_t>(parameters.size()), scalars,
         update);
  }
  // Whether parameters of equal treatment may be passed as one flat tensor.
  bool is_elementwise() const { return table().elementwise == 1; }

  // Fills `values` (scalar_count numbers) for the next step. Neither allocates nor synchronises.
  void scalars(const mlg_step& coming, std::span<float> values) const {
    call(table().scalars, &coming, values.data());
  }

  // Whether other weights than the masters are scored and saved: those that record_evaluation() writes.
  bool has_evaluation_weights() const { return table().record_evaluation != nullptr; }
  // Records the calls that write evaluation[i] for parameters[i]. The recorder gives the states of record().
  // Precondition: has_evaluation_weights().
  void record_evaluation(const mlg_recorder& recorder, std::span<const mlg_parameter> parameters,
                         std::span<const mlg_value> evaluation) const {
    call(table().record_evaluation, &recorder, parameters.data(),
         static_cast<std::uint32_t>(parameters.size()), evaluation.data());
  }
};

}  // namespace mulligan
