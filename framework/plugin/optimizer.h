// Optimizer: an optimiser of one parameter group made by a plugin; contracts of the calls in
// <mulligan/optimizer.h>.
#pragma once

#include <mulligan/optimizer.h>

#include <span>

#include "framework/plugin/plugin_instance.h"

namespace mulligan {

class Optimizer : public PluginInstance<mlg_optimizer_table> {
 public:
  Optimizer(PluginHandle plugin, const PluginConfig& config)
      : PluginInstance(std::move(plugin), config), scalar_count_(table().scalar_count(instance())) {}

  // How many f32 numbers scalars() supplies.
  std::uint32_t scalar_count() const { return scalar_count_; }

  // Records one update of all parameters; `scalars` is an f32 [scalar_count] value, 0 when scalar_count is 0.
  void record(const mlg_recorder& recorder, std::span<const mlg_parameter> parameters,
              mlg_value scalars) const {
    check(table().record(instance(), &recorder, parameters.data(),
                         static_cast<std::uint32_t>(parameters.size()), scalars));
  }

  // Fills `values` (scalar_count numbers) for the coming step: `step` is 1 for the first update, `lr` the
  // group's scheduled rate. Neither allocates nor synchronises.
  void scalars(std::int64_t step, double lr, std::span<float> values) const {
    const mlg_step coming{step, lr};
    check(table().scalars(instance(), &coming, values.data()));
  }

 private:
  std::uint32_t scalar_count_;
};

}  // namespace mulligan
