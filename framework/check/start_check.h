// What a run checks of its plugins before the first step, on small inputs: milliseconds against hours of
// training on whatever memory held.
#pragma once

#include "framework/config/model_config.h"
#include "framework/core/tensor_type.h"
#include "framework/plugin/backend.h"
#include "framework/plugin/loss.h"
#include "framework/plugin/ttt.h"

namespace mulligan {

// Throws config_error, naming [loss] and the plugin, where the loss leaves part of token_loss or of a
// gradient unwritten. `backend` knows its kernels; nothing is checked on one that computes nothing.
void check_loss_at_start(Backend& backend, const Loss& loss, const ModelConfig& model, DType compute);

// The same for adapters of a test-time-training rule, at the taps of the model.
void check_adapters_at_start(Backend& backend, const TttPlugin& plugin, const ModelConfig& model);

}  // namespace mulligan
