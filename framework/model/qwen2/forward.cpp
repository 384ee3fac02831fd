#include "framework/model/qwen2/forward.h"

#include <fmt/format.h>

#include "framework/model/elements/stages.h"
#include "framework/model/qwen2/parameters.h"
#include "kernels/axpby/op.h"
#include "kernels/embedding/op.h"
#include "kernels/matmul/op.h"
#include "kernels/qk_norm_rope/op.h"
#include "kernels/row_bias/op.h"
#include "kernels/silu_gate/op.h"
#include "kernels/weighted_rms_norm/op.h"

namespace mulligan::qwen2 {
namespace {

class Builder {
 public:
  Builder(Tape& tape, const ModelConfig& model, const ParameterValues& parameters,
          const ForwardInputs& inputs, const ForwardOptions& options)
      : tape_(tape),
        graph_(tape.graph()),
        m_(model),
        p_(parameters),
        in_(inputs),
        options_(options),
        head_rows_(tape, inputs, options, model.layers) {}

  Value build() {
    Value x = point("embed", ops::embedding(tape_, in_.tokens, p_(embedding_parameter)));
    for (layer_ = 0; layer_ < m_.layers; ++layer_) {
      const Value a = attention_part(norm("norm1", x, "input_layernorm.weight"));
      x = add("resid1", head_rows_.in_block(layer_, x), a);
      x = add("resid2", x, mlp_part(norm("norm2", x, "post_attention_layernorm.weight")));
      if (options_.after_block) options_.after_block(layer_, x, Value{});
    }
    layer_ = -1;
    x = head_rows_.after_blocks(x);
    const Value n =
        point("final_norm", ops::weighted_rms_norm(tape_, x, p_(final_norm_parameter), m_.norm_eps));
    if (options_.hidden) *options_.hidden = n;
    const Value head = p_(m_.tied_head ? embedding_parameter : head_parameter);
    const Value logits = head_logits(tape_, options_, n, head);
    return tap({TapKind::head, -1, -1, n, n, point("logits", logits)});
  }

 private:
  Value parameter(std::string_view name) const { return p_(layer_parameter(layer_, name)); }
  // As many rows as `like` has, of its dtype.
  TensorType matrix(Value like, std::int64_t columns) const {
    const TensorType& type = graph_.type(like);
    return TensorType(type.dtype, {type.dims[0], columns});
  }
  Value point(std::string_view name, Value value) const {
    if (options_.point) options_.point(name, layer_, value);
    return value;
  }
  Value tap(const TapSite& site) { return options_.taps ? options_.taps->at(tape_, site) : site.output; }

  Value norm(std::string_view name, Value x, std::string_view weight) {
    return point(name, ops::weighted_rms_norm(tape_, x, parameter(weight), m_.norm_eps));
  }
  Value add(std::string_view name, Value x, Value change) {
    return point(name, ops::add(tape_, x, change, 1.0, 1.0));
  }

  // A projection to `heads` heads with its bias: [T, heads, h].
  Value project(TapKind kind, std::string_view letter, Value n, std::int64_t heads) {
    const TensorType& input = graph_.type(n);
    const TensorType type(input.dtype, {input.dims[0], heads, m_.head_width});
    const auto name = [letter](const char* of) { return fmt::format("self_attn.{}_proj.{}", letter, of); };
    const Value raw = ops::linear(tape_, n, parameter(name("weight")), type);
    const Value biased = ops::row_bias(tape_, raw, parameter(name("bias")));
    return tap({kind, layer_, layer_, n, n, point(letter, biased)});
  }
  Value rotated(std::string_view name, Value x) {
    const ops::QkNormRope rotation{false, m_.norm_eps, m_.rope.dims, options_.row_length};
    return point(name, ops::qk_norm_rope(tape_, x, in_.rope_cos, in_.rope_sin, Value{}, rotation));
  }

  Value attention_part(Value n) {
    const Value q = rotated("q_rope", project(TapKind::q, "q", n, m_.heads));
    const Value k = rotated("k_rope", project(TapKind::k, "k", n, m_.kv_heads));
    const Value v = project(TapKind::v, "v", n, m_.kv_heads);
    const Value all = point("attn_out", attend({tape_, m_, p_}, {q, k, v, in_.cu_seqlens}));
    const Value o = head_rows_.in_block(layer_, all);
    if (options_.taps) n = head_rows_.in_block(layer_, n);
    const Value out = ops::linear(tape_, o, parameter("self_attn.o_proj.weight"), matrix(n, m_.width));
    return tap({TapKind::attention_output, layer_, layer_, o, n, point("o_proj", out)});
  }

  Value mlp_part(Value n) {
    const TensorType hidden = matrix(n, m_.mlp_hidden);
    const Value gate = point("gate", ops::linear(tape_, n, parameter("mlp.gate_proj.weight"), hidden));
    const Value raw = point("up", ops::linear(tape_, n, parameter("mlp.up_proj.weight"), hidden));
    const Value up = tap({TapKind::mlp_up, layer_, layer_, n, n, raw});
    const Value activation = point("act", ops::silu_gate(tape_, gate, up));
    const Value out = ops::linear(tape_, activation, parameter("mlp.down_proj.weight"), matrix(n, m_.width));
    return tap({TapKind::mlp_down, layer_, layer_, activation, n, point("down", out)});
  }

  Tape& tape_;
  Graph& graph_;
  const ModelConfig& m_;
  const ParameterValues& p_;
  const ForwardInputs& in_;
  const ForwardOptions& options_;
  HeadRows head_rows_;
  std::int64_t layer_ = -1;
};

}  // namespace

Value build_forward(Tape& tape, const ModelConfig& model, const ParameterValues& parameters,
                    const ForwardInputs& inputs, const ForwardOptions& options) {
  return Builder(tape, model, parameters, inputs, options).build();
}

}  // namespace mulligan::qwen2
