// A small model with everything that fused kernels stand for, run once with them or without.
#pragma once

#include <cstdint>
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
  std::int64_t fused_calls = 0;                         // of qkv_split_norm_rope_bwd
};

// What a model is run on.
struct ModelPass {
  std::int32_t tokens = 50, cut = 21;  // in two segments, the second from token `cut` on
  std::int32_t first_id = 0, ids = 96;
};

// Six layers with loops, skips and gates, lanes from the fifth on.
ModelConfig fused_test_model();

// With all parameters off their initial values, so that no part of the model is idle.
ModelResult run_model(Backend& backend, const ModelConfig& model, LayerOrderKind order, DType compute,
                      const ModelPass& pass = {});

// The largest difference, in units of the largest element of `b`.
float difference(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace mulligan
