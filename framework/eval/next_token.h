// NextToken: which token follows a text, by the one forward pass.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "framework/config/model_config.h"
#include "framework/graph/program.h"
#include "framework/model/packed_inputs.h"
#include "framework/model/parameter_values.h"

namespace mulligan {

struct NextTokenOptions {
  DType compute = MLG_F32;
  LayerOrderKind layer_order = LayerOrderKind::plain;  // recurrent models are scored looped
  std::int64_t window = 0;  // tokens of the longest context; of a longer text the last ones count
  // Makes the adapters of one program; empty: none. Each lives as long as its program.
  std::function<std::unique_ptr<Taps>()> adapters;
};

class NextToken {
 public:
  // Plans a program for each length of context 32, 64, 128, ... up to the window: a token costs a forward
  // pass over the shortest of them that holds the text so far. Parameters are read from `store` as `layouts`
  // say. All references must outlive this object. The programs must be bound before logits().
  NextToken(TensorStore& store, const ModelConfig& model, const std::vector<ParameterLayout>& layouts,
            NextTokenOptions options);

  std::vector<Program*> programs();

  // The logits after the softcap, [vocabulary] in f32 (from the compute dtype), of the token behind `text`,
  // which is one document from its BOS on. Precondition: `text` is not empty. Valid until the next call.
  std::span<const float> logits(std::span<const int> text);

 private:
  struct Length {  // of context
    std::unique_ptr<Taps> adapters;
    std::unique_ptr<Program> program;
    PackedInputWriter inputs;
  };
  Length make(const ModelConfig& model, const std::vector<ParameterLayout>& layouts, std::int64_t tokens);

  TensorStore& store_;
  NextTokenOptions options_;
  std::map<std::int64_t, Length> lengths_;  // by tokens
  std::vector<std::int32_t> tokens_;
  std::vector<float> logits_;
};

}  // namespace mulligan
