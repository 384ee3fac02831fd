// Loss: a loss made by a plugin; contracts of the calls in <mulligan/loss.h>.
#pragma once

#include <mulligan/loss.h>

#include "framework/plugin/plugin_instance.h"

namespace mulligan {

class Loss : public PluginInstance<mlg_loss_table> {
 public:
  using PluginInstance::PluginInstance;

  // Whether the logits are handed over before the model's softcap.
  bool fuses_softcap() const { return table().fuses_softcap != 0; }

  // Fills forward.saved.
  void record_forward(const mlg_recorder& recorder, mlg_loss_forward& forward) const {
    check(table().record_forward(instance(), &recorder, &forward));
  }
  void record_backward(const mlg_recorder& recorder, const mlg_loss_backward& backward) const {
    check(table().record_backward(instance(), &recorder, &backward));
  }
};

}  // namespace mulligan
