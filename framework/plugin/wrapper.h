// Wrapper: a plugin's work around the updates of all optimisers of a run; contracts of the calls in <mulligan/wrapper.h>.
#pragma once

#include <mulligan/wrapper.h>

#include <span>

#include "framework/plugin/plugin_instance.h"

namespace mulligan {

class Wrapper : public PluginInstance<mlg_wrapper_table> {
 public:
  using PluginInstance::PluginInstance;

  // How many f32 numbers scalars() supplies.
  std::uint32_t scalar_count() const { return table().scalar_count(instance()); }

  // Records the work that follows an update of all parameters. `scalars` is an f32 [scalar_count] value, 0 if there are none.
  void record(const mlg_recorder& recorder, std::span<const mlg_wrapped_parameter> parameters,
              mlg_value scalars) const {
    call(table().record, &recorder, parameters.data(), static_cast<std::uint32_t>(parameters.size()),
         scalars);
  }

  // Fills `values` (scalar_count numbers) for the next step. Neither allocates nor synchronises.
  void scalars(const mlg_wrapper_step& coming, std::span<float> values) const {
    call(table().scalars, &coming, values.data());
  }
};

}  // namespace mulligan
