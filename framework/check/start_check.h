// Checks of a run's plugins before the first step, on small inputs. They take milliseconds and prevent hours of training on undefined
// memory.
#pragma once

#include "framework/config/model_config.h"
#include "framework/core/tensor_type.h"
#include "framework/plugin/backend.h"
#include "framework/plugin/loss.h"
#include "framework/plugin/ttt.h"

namespace mulligan {

// Throws config_error that names [loss] and the plugin if the loss leaves part of token_loss or of a gradient unwritten. `backend` knows
// its kernels. On a backend that computes nothing, nothing is checked.
void check_loss_at_start(Backend& backend, const Loss& loss, const ModelConfig& model, DType compute);

// The same for adapters of a test-time-training rule, at the taps of the model.
void check_adapters_at_start(Backend& backend, const TttPlugin& plugin, const ModelConfig& model);

}  // namespace mulligan
