// Queries, keys, values and gates of an attention part: one matmul for each, or one matmul with their packed weights.
#pragma once

#include <optional>
#include <unordered_map>

#include "framework/config/model_config.h"
#include "framework/graph/tape.h"
#include "framework/model/elements/stages.h"
#include "framework/model/forward.h"
#include "framework/model/parameter_values.h"
#include "kernels/qk_norm_rope/op_qkv.h"

namespace mulligan {

// The arguments must outlive it.
class QkvProjection {
 public:
  QkvProjection(Tape& tape, const ModelConfig& model, const ParameterValues& parameters,
                const ForwardInputs& inputs, const ForwardOptions& options)
      : tape_(tape), m_(model), p_(parameters), in_(inputs), options_(options), gate_(head_gate(model)) {}

  // From the normed input n [T, D]. Passes the taps q, k and v of execution slot `slot`.
  ops::AttentionInputs operator()(Value n, std::int64_t layer, std::int64_t slot);

 private:
  // Whether the backend has the kernels and no tap changes a single result.
  bool can_pack(Value n, std::int64_t layer, std::int64_t slot) const;
  ops::AttentionInputs single_matmuls(Value n, std::int64_t layer, std::int64_t slot);
  ops::AttentionInputs packed_matmul(Value n, std::int64_t layer, std::int64_t slot);
  // Whether the gate's weight can lie in the packed matrix: it has the dtype of the others.
  bool packs_gate(std::int64_t layer) const;
  // [T, H], by a matmul of its own.
  Value gate(Value n, std::int64_t layer);
  // [rows, D], made once for all passes of a layer.
  Value packed_weight(std::int64_t layer);

  Value tap(TapKind kind, Value n, Value output, std::int64_t layer, std::int64_t slot);
  // From the results of the matmuls q, k and v.
  TensorType heads(Value n, TapKind kind) const;
  // [H, window]
  Value gate_weight(std::int64_t layer) const { return p_(block_parameter(layer, gate_->parameter)); }
  // The same with columns of zeros up to [H, D], made once for all passes of a layer.
  Value wide_gate_weight(std::int64_t layer);
  Value gain(std::int64_t layer) const {
    return m_.q_gain != 0 ? p_(block_parameter(layer, "attn.q_gain")) : Value{};
  }
  ops::QkNormRope rotation() const;

  Tape& tape_;
  const ModelConfig& m_;
  const ParameterValues& p_;
  const ForwardInputs& in_;
  const ForwardOptions& options_;
  std::optional<HeadGate> gate_;
  std::unordered_map<std::int64_t, Value> packed_weights_, wide_gate_weights_;  // by layer
};

}  // namespace mulligan
