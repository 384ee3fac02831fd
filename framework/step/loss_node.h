// Attaches a loss plugin to the logits of a forward pass.
#pragma once

#include "framework/graph/tape.h"
#include "framework/plugin/loss.h"

namespace mulligan {

// Records token_loss [T] f32 (nats) from logits [T, V] before the model's softcap `cap` (0: none) and targets
// [T] i32. A loss that fuses the softcap gets the raw logits and the cap; for others the softcap is recorded
// beforehand. The gradient with respect to the logits takes over their storage, so that no second [T, V]
// tensor is needed. `loss` must live until the tape's backward pass is recorded. Throws the plugin's sentence
// as run_error. `hidden` [T, D] is what the head multiplied; a loss that reads it adds to its gradient.
// `upstream` [T] f32: the seed that tape.backward(token_loss, ...) will be given, where that is known now: a
// loss that can computes the gradient in the forward pass, where the tape's fused kernels have it, so nothing
// else may read the logits.
Value attach_loss(Tape& tape, const Loss& loss, double cap, Value hidden, Value logits, Value targets,
                  Value upstream = {});

}  // namespace mulligan
