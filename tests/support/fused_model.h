// A small model with everything that fused kernels stand for, run once with them or without.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "framework/core/tensor_type.h"
#include "framework/model/parameters.h"
#include "tests/support/plugins.h"

namespace mulligan {

struct ModelResult {
  std::vector<float> logits;
  std::map<std::string, std::vector<float>> gradients;  // by parameter
};

// Six layers with loops, skips and gates, lanes from the fifth on; 50 tokens in two segments; all parameters
// off their initial values.
ModelConfig fused_test_model();

ModelResult run_model(Backend& backend, const ModelConfig& model, LayerOrderKind order, DType compute);
// fused_test_model() on the cpu backend.
ModelResult run_model(bool fused, LayerOrderKind order, DType compute);

// The largest difference, in units of the largest element of `b`.
float difference(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace mulligan
