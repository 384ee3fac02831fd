// What the builders of qwen2 and modded share: each layer runs once, and its attention and MLP parts add to one stream.
#pragma once

#include <string>
#include <string_view>

#include "framework/model/elements/stages.h"
#include "framework/model/forward.h"
#include "kernels/axpby/op.h"
#include "kernels/embedding/op.h"
#include "kernels/matmul/op.h"
#include "kernels/qk_norm_rope/op.h"
#include "kernels/weighted_rms_norm/op.h"

namespace mulligan {

struct LayerBuilder {
  Tape& tape;
  const ModelConfig& m;
  const ParameterValues& p;
  const ForwardInputs& in;
  const ForwardOptions& options;
  HeadRows head_rows{tape, in, options, m.layers};
  std::int64_t layer = -1;

  // As many rows as `like` has, of its dtype.
  TensorType matrix(Value like, std::int64_t columns) const {
    const TensorType& type = tape.graph().type(like);
    return TensorType(type.dtype, {type.dims[0], columns});
  }
  TensorType heads(Value like, std::int64_t count) const {
    const TensorType& type = tape.graph().type(like);
    return TensorType(type.dtype, {type.dims[0], count, m.head_width});
  }
  Value point(std::string_view name, Value value) const {
    if (options.point) options.point(name, layer, value);
    return value;
  }
  Value tap(TapKind kind, Value input, Value block_input, Value output) {
    return options.taps ? options.taps->at(tape, {kind, layer, layer, input, block_input, output}) : output;
  }
  Value norm(std::string_view name, Value x, const std::string& gains) {
    return point(name, ops::weighted_rms_norm(tape, x, p(gains), norm_epsilon(m)));
  }
  Value add(Value x, Value change) { return ops::add(tape, x, change, 1.0, 1.0); }
  Value rotated(std::string_view name, Value x) {
    const ops::QkNormRope rotation{m.qk_norm, norm_epsilon(m), m.rope.dims, options.row_length};
    return point(name, ops::qk_norm_rope(tape, x, in.rope_cos, in.rope_sin, Value{}, rotation));
  }
  // The result of attention. Taps then see n, the input of the part, in the same rows.
  Value attended(Value q, Value k, Value v, Value& n) {
    const Value all = point("attn_out", attend({tape, m, p}, {q, k, v, in.cu_seqlens}));
    const Value o = head_rows.in_block(layer, all);
    if (options.taps) n = head_rows.in_block(layer, n);
    return o;
  }
  // What the head multiplies.
  Value last_norm(Value x, const std::string& gains) {
    layer = -1;
    const Value n = norm("final_norm", head_rows.after_blocks(x), gains);
    if (options.hidden) *options.hidden = n;
    return n;
  }
};

}  // namespace mulligan
