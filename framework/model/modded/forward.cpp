#include "framework/model/modded/forward.h"

#include <string>

#include "framework/model/elements/stages.h"
#include "framework/model/modded/parameters.h"
#include "kernels/axpby/op.h"
#include "kernels/embedding/op.h"
#include "kernels/leaky_relu_squared/op.h"
#include "kernels/matmul/op.h"
#include "kernels/qk_norm_rope/op.h"
#include "kernels/weighted_rms_norm/op.h"

namespace mulligan::modded {
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
        eps_(norm_epsilon(model)),
        head_rows_(tape, inputs, options, model.layers) {}

  Value build() {
    const Value embedded = ops::embedding(tape_, in_.tokens, p_(embedding_parameter));
    Value x = norm("embed_norm", embedded, embedding_norm_parameter);
    for (layer_ = 0; layer_ < m_.layers; ++layer_) {
      const Value a = attention_part(norm("norm1", x, of_block("norm1.gains")));
      x = add(head_rows_.in_block(layer_, x), a);
      x = point("block", add(x, mlp_part(norm("norm2", x, of_block("norm2.gains")))));
      if (options_.after_block) options_.after_block(layer_, x, Value{});
    }
    layer_ = -1;
    x = head_rows_.after_blocks(x);
    const Value n = norm("final_norm", x, final_norm_parameter);
    if (options_.hidden) *options_.hidden = n;
    const Value logits = linear("proj", n, matrix(n, m_.vocabulary));
    return tap({TapKind::head, -1, -1, n, n, point("logits", logits)});
  }

 private:
  std::string of_block(std::string_view name) const { return block_parameter(layer_, name); }
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

  Value norm(std::string_view name, Value x, const std::string& gains) {
    return point(name, ops::weighted_rms_norm(tape_, x, p_(gains), eps_));
  }
  Value add(Value x, Value change) { return ops::add(tape_, x, change, 1.0, 1.0); }
  Value linear(const std::string& name, Value n, const TensorType& type) {
    return ops::linear(tape_, n, p_(name + ".weight"), type, p_(name + ".bias"));
  }

  // A projection of the block's input to `heads` heads: [T, heads, h].
  Value project(TapKind kind, const std::string& letter, Value n, std::int64_t heads) {
    const TensorType& input = graph_.type(n);
    const TensorType type(input.dtype, {input.dims[0], heads, m_.head_width});
    return tap({kind, layer_, layer_, n, n, point(letter, linear(of_block("attn." + letter), n, type))});
  }
  Value rotated(std::string_view name, Value x) {
    const ops::QkNormRope rotation{m_.qk_norm, eps_, m_.rope.dims, options_.row_length};
    return point(name, ops::qk_norm_rope(tape_, x, in_.rope_cos, in_.rope_sin, Value{}, rotation));
  }

  Value attention_part(Value n) {
    const Value q = rotated("q_rope", project(TapKind::q, "q", n, m_.heads));
    const Value k = rotated("k_rope", project(TapKind::k, "k", n, m_.kv_heads));
    const Value v = project(TapKind::v, "v", n, m_.kv_heads);
    const Value all = point("attn_out", attend({tape_, m_, p_}, {q, k, v, in_.cu_seqlens}));
    const Value o = head_rows_.in_block(layer_, all);
    if (options_.taps) n = head_rows_.in_block(layer_, n);
    const Value out = linear(of_block("attn.proj"), o, matrix(n, m_.width));
    return tap({TapKind::attention_output, layer_, layer_, o, n, point("attn_proj", out)});
  }

  Value mlp_part(Value n) {
    const Value hidden = point("fc", linear(of_block("mlp.fc"), n, matrix(n, m_.mlp_hidden)));
    const Value up = tap({TapKind::mlp_up, layer_, layer_, n, n, hidden});
    const Value activation = ops::leaky_relu_squared(tape_, up, 0);
    const Value out = linear(of_block("mlp.proj"), activation, matrix(n, m_.width));
    return tap({TapKind::mlp_down, layer_, layer_, activation, n, point("mlp_proj", out)});
  }

  Tape& tape_;
  Graph& graph_;
  const ModelConfig& m_;
  const ParameterValues& p_;
  const ForwardInputs& in_;
  const ForwardOptions& options_;
  double eps_;
  HeadRows head_rows_;
  std::int64_t layer_ = -1;
};

}  // namespace

Value build_forward(Tape& tape, const ModelConfig& model, const ParameterValues& parameters,
                    const ForwardInputs& inputs, const ForwardOptions& options) {
  return Builder(tape, model, parameters, inputs, options).build();
}

}  // namespace mulligan::modded
