// The only forward pass of the model. Only this chooses its builder, by model.family.
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
  // [N] i32: the rows with requested logits; absent: all. If N < T, everything after attention in the last block is computed
  // for these rows only (HeadRows).
  Value head_rows;
  // The head multiplies FP8 numbers (train.fp8_head). The gradient of its logits becomes an FP8 number times this power of
  // two; 0: the compute dtype's.
  double fp8_gradient_scale = 0;
  // If set, gets the hidden state that the head multiplies, [T, D] in the compute dtype.
  Value* hidden = nullptr;
  // Called with intermediate values by name, in the order of computation; for tests. Names and slot (-1 outside of blocks) are
  // those of docs/qwen2.md. The family modded names more. The record's names "block", the stream or lane 0 after each block,
  // and "lane1". With head_rows, the values of the last block have rows of the head only.
  std::function<void(std::string_view, std::int64_t, Value)> point;
};

// Returns the logits before soft capping, [T, V] in the compute dtype ([N, V] with head_rows). Formulas:
// docs/architecture.md. The family's builder writes the plain formula; the passes of framework/graph/passes.h turn it into
// fused calls.
Value build_forward(Tape& tape, const ModelConfig& model, const ParameterValues& parameters,
                    const ForwardInputs& inputs, const ForwardOptions& options);

// The rows that the head reads (ForwardOptions::head_rows). After the last block's attention no row reads another, so the
// other rows end there.
class HeadRows {
 public:
  // For a model that executes this number of blocks over T tokens.
  HeadRows(Tape& tape, const ForwardInputs& inputs, const ForwardOptions& options, std::int64_t blocks);
  // x [T, ...] after attention in execution slot `slot`: [N, ...] in the last slot if N < T, else x.
  Value in_block(std::int64_t slot, Value x) const;
  // x [T, ...] or [N, ...] after the last block: [N, ...].
  Value after_blocks(Value x) const;

 private:
  Tape& tape_;
  Value rows_;
  std::int64_t last_slot_;  // the slot after whose attention rows end; -1: none
};

// The logits [N, V] of `hidden` [N, D], after the last norm, and the head's table [V, D].
Value head_logits(Tape& tape, const ForwardOptions& options, Value hidden, Value table);

// eps of every norm: model.norm_eps, or the machine epsilon of f32 (the dtype in which norms are computed).
double norm_epsilon(const ModelConfig& model);

}  // namespace mulligan
