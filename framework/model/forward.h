// The only forward pass of the model. model.family chooses its builder, and nothing else does.
#pragma once

#include <functional>
#include <string_view>

#include "framework/config/model_config.h"
#include "framework/graph/tape.h"
#include "framework/model/parameter_values.h"
#include "framework/model/taps.h"

namespace mulligan {

struct ForwardInputs {
  Value tokens;      // [T] i32
  Value cu_seqlens;  // [N+1] i32: attention segments
  Value rope_cos;    // [positions, rope.dims/2] f32; absent when rope.dims is 0
  Value rope_sin;
};

struct ForwardOptions {
  LayerOrderKind layer_order = LayerOrderKind::plain;
  std::int64_t row_length = 0;  // rotary positions restart every row_length tokens; T for one packed row
  Taps* taps = nullptr;
  // [N] i32: the rows whose logits are wanted; absent: all. Where they are fewer than T, what follows attention
  // in the last block is computed for them alone (HeadRows).
  Value head_rows;
  // The head multiplies numbers of FP8 (train.fp8_head), and the gradient of its logits becomes such a number times
  // this power of two; 0: the compute dtype's.
  double fp8_gradient_scale = 0;
  // Gets the hidden state that the head multiplies, [T, D] in the compute dtype, where it is given.
  Value* hidden = nullptr;
  // Called with intermediate values by name, in the order in which they are computed: names and slot (-1
  // outside of blocks) as in docs/qwen2.md. Families may name more or fewer; for tests.
  std::function<void(std::string_view, std::int64_t, Value)> point;
  // Called after each executed block with (slot, lane 0 or the single stream, lane 1 or absent); for
  // tests. With head_rows the last block's have rows of the head only.
  std::function<void(std::int64_t, Value, Value)> after_block;
};

// Returns the logits before soft capping, [T, V] in the compute dtype ([N, V] with
// head_rows). Formulas: docs/architecture.md. The family's builder writes the plain formula; the passes of
// framework/graph/passes.h make fused calls of it.
Value build_forward(Tape& tape, const ModelConfig& model, const ParameterValues& parameters,
                    const ForwardInputs& inputs, const ForwardOptions& options);

// The rows that the head reads (ForwardOptions::head_rows). After the last block's attention no row reads another, so
// the others end there.
class HeadRows {
 public:
  // Of a model that executes so many blocks over T tokens.
  HeadRows(Tape& tape, const ForwardInputs& inputs, const ForwardOptions& options, std::int64_t blocks);
  // x [T, ...] in execution slot `slot`, after attention: [N, ...] in the last one where N < T, else x.
  Value in_block(std::int64_t slot, Value x) const;
  // x [T, ...] or [N, ...] after the last block: [N, ...].
  Value behind_blocks(Value x) const;

 private:
  Tape& tape_;
  Value rows_;
  std::int64_t last_slot_;  // whose rows end after attention; -1: none's
};

// The logits [N, V] of `hidden` [N, D], after the last norm, and the head's table [V, D].
Value head_logits(Tape& tape, const ForwardOptions& options, Value hidden, Value table);

// eps of every norm: model.norm_eps, or the machine epsilon of f32 (the dtype in which norms are computed).
double norm_epsilon(const ModelConfig& model);

}  // namespace mulligan
