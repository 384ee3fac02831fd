// Properties that single kernels of a forward pass must have whatever the model, on the run's backend: D14.
#pragma once

#include "framework/config/model_config.h"
#include "framework/core/tensor_type.h"
#include "framework/plugin/backend.h"
#include "tools/doctor/finding.h"

namespace mulligan::doctor {

// The rotary embedding: position 0 stays as it is, lengths are kept, every head is turned, pairs are (j,
// j + dims/2), and the product of a query and a key depends on their distance alone.
Finding check_rotation(Backend& backend, const ModelConfig& model, DType compute);

// Attention over values that are all 1 gives 1 at every width from 1 to 130 keys: the softmax of a row
// sums to 1.
Finding check_softmax(Backend& backend, const ModelConfig& model, DType compute);

}  // namespace mulligan::doctor
