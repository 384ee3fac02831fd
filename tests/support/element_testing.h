// What tests of the model's elements (framework/model/elements/NAME/NAME_test.cpp) share: a small model of
// which all elements are off but those that a test sets, and the graph that it becomes.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "framework/model/elements/stages.h"
#include "framework/model/forward.h"
#include "framework/model/packed_inputs.h"
#include "framework/model/parameters.h"
#include "tests/support/sentence.h"
#include "tests/support/small_config.h"

namespace mulligan {

// Two layers of width 16 with four heads. `sets`: as of --set.
inline ModelConfig element_model(std::vector<std::string> sets = {}) {
  const std::vector<std::string> off = {"model.layers=2", "model.width=16", "model.softcap=0",
                                        "model.attention_gate=false", "model.xsa_last_layers=0"};
  sets.insert(sets.begin(), off.begin(), off.end());
  return small_config(sets).config.model;
}

// The sentence with which such a configuration is refused; empty: it is not.
inline std::string element_refusal(std::vector<std::string> sets) {
  return refusal_of([&] { element_model(std::move(sets)); });
}

// Names of the calls of forward and backward pass over 8 tokens, unfused.
inline std::vector<std::string> element_calls(const ModelConfig& model, HeadUse use = HeadUse::training) {
  Graph graph;
  Tape tape(graph, true);
  const PackedInputs inputs = declare_packed_inputs(graph, "in", model, 8, 8);
  ForwardOptions options;
  options.row_length = 8;
  options.layer_order = scored_order(model);
  const ParameterValues parameters(tape, parameter_layouts(model, MLG_F32), true);
  const Value raw = build_forward(tape, model, parameters, inputs.forward, options);
  const Value logits = transform_head(tape, model, parameters, raw, use);
  tape.backward(logits, graph.external("seed", graph.type(logits)));
  std::vector<std::string> calls;
  for (const Call& call : graph.calls()) calls.push_back(call.kernel);
  return calls;
}
inline std::int64_t count_calls(const ModelConfig& model, const std::string& kernel,
                                HeadUse use = HeadUse::training) {
  return std::ranges::count(element_calls(model, use), kernel);
}

// The parameters that `model` has beyond those of a model without elements.
inline std::vector<ParameterSpec> element_parameters(const ModelConfig& model) {
  std::vector<std::string> plain;
  for (const ParameterSpec& spec : model_parameters(element_model())) plain.push_back(spec.name);
  std::vector<ParameterSpec> own;
  for (const ParameterSpec& spec : model_parameters(model)) {
    if (std::ranges::find(plain, spec.name) == plain.end()) own.push_back(spec);
  }
  return own;
}

}  // namespace mulligan
