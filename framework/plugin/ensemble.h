// Ensemble: a plugin that makes members of a centre model; contracts of the calls in <mulligan/ensemble.h>.
#pragma once

#include <mulligan/ensemble.h>

#include "framework/plugin/plugin_instance.h"

namespace mulligan {

class Ensemble : public PluginInstance<mlg_ensemble_table> {
 public:
  using PluginInstance::PluginInstance;

  // Writes all of out [rows, columns].
  void make(const mlg_ensemble_weight& weight, float* out) const { call(table().make, &weight, out); }

  // Bytes that one member's weight would need.
  double stored_bytes(std::int64_t rows, std::int64_t columns) const {
    return result<double>(table().stored_bytes, rows, columns);
  }
};

}  // namespace mulligan
