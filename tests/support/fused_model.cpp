#include "tests/support/fused_model.h"

#include <algorithm>
#include <cmath>

#include "framework/core/philox.h"
#include "framework/model/initialise.h"
#include "tests/support/model_runner.h"

namespace mulligan {

ModelConfig fused_test_model() {
  ModelConfig model;
  model.vocabulary = 96;
  model.layers = 6;
  model.width = 40;
  model.heads = 4;
  model.kv_heads = 2;
  model.head_width = 10;
  model.mlp_hidden = 72;
  model.rope.dims = 4;
  model.skip_gates = true;
  model.loop = {1, 2, 2, 0.5};
  model.lanes.parallel_start = 4;
  resolve_model_defaults(model);
  return model;
}

ModelResult run_model(Backend& backend, const ModelConfig& model, LayerOrderKind order, DType compute,
                      const ModelPass& pass) {
  ModelRunner::Options options;
  options.layer_order = order;
  options.compute = compute;
  options.segments = 3;
  ModelRunner runner(backend, model, pass.tokens, options);
  for (const ParameterLayout& layout : runner.parameters()) {
    std::vector<float> values = initial_values(layout.spec, 5);
    const PhiloxStream noise(5, "noise/" + layout.spec.name);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += static_cast<float>(0.1 * noise.normal(i));
    runner.set_parameter(layout.spec.name, values);
  }
  std::vector<std::int32_t> tokens, targets;
  for (std::int32_t i = 0; i < pass.tokens; ++i) {
    tokens.push_back(pass.first_id + i * 37 % pass.ids);
    targets.push_back(pass.first_id + i * 53 % pass.ids);
  }
  runner.run(tokens, targets, {0, pass.cut, pass.tokens});
  ModelResult result{runner.logits(), {}, runner.calls("qkv_split_norm_rope_bwd")};
  for (const ParameterLayout& layout : runner.parameters())
    result.gradients[layout.spec.name] = runner.gradient(layout.spec.name);
  return result;
}

float difference(const std::vector<float>& a, const std::vector<float>& b) {
  float largest = 0, scale = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::isfinite(a[i]) ? std::abs(a[i] - b[i]) : HUGE_VALF);
    scale = std::max(scale, std::abs(b[i]));
  }
  return scale == 0 ? largest : largest / scale;
}

}  // namespace mulligan
