// Loss: a loss made by a plugin; contracts of the calls in <mulligan/loss.h>.
#pragma once

#include <mulligan/loss.h>

#include "framework/plugin/plugin_instance.h"

namespace mulligan {

class Loss : public PluginInstance<mlg_loss_table> {
 public:
  using PluginInstance::PluginInstance;

  // Whether the loss gets the logits without the model's softcap.
  bool fuses_softcap() const { return table().fuses_softcap != 0; }

  // Whether token_loss is a cross entropy in nats, possibly with a further term.
  bool is_cross_entropy() const { return table().value == MLG_LOSS_CROSS_ENTROPY; }

  // Whether the loss reads the model's final hidden state, and `hidden` and `hidden_gradient` below are given.
  bool reads_hidden() const { return table().reads_hidden != 0; }

  // Fills forward.saved.
  void record_forward(const mlg_recorder& recorder, mlg_loss_forward& forward) const {
    call(table().record_forward, &recorder, &forward);
  }
  void record_backward(const mlg_recorder& recorder, const mlg_loss_backward& backward) const {
    call(table().record_backward, &recorder, &backward);
  }

  // Whether forward and backward can be recorded together: record_forward_backward(), with `both` as for backward.
  bool has_forward_backward() const { return table().record_forward_backward && !reads_hidden(); }
  void record_forward_backward(const mlg_recorder& recorder, const mlg_loss_backward& both) const {
    call(table().record_forward_backward, &recorder, &both);
  }
};

}  // namespace mulligan
