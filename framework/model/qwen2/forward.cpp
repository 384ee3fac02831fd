#include "framework/model/qwen2/forward.h"

#include <fmt/format.h>

#include "framework/model/layer_builder.h"
#include "framework/model/qwen2/parameters.h"
#include "kernels/row_bias/op.h"
#include "kernels/silu_gate/op.h"

namespace mulligan::qwen2 {
namespace {

struct Builder : LayerBuilder {
  Value build() {
    Value x = point("embed", ops::embedding(tape, in.tokens, p(embedding_parameter)));
    for (layer = 0; layer < m.layers; ++layer) {
      const Value a = attention_part(norm("norm1", x, name("input_layernorm.weight")));
      x = point("resid1", add(head_rows.in_block(layer, x), a));
      const Value change = mlp_part(norm("norm2", x, name("post_attention_layernorm.weight")));
      x = point("resid2", add(x, change));
    }
    const Value n = last_norm(x, final_norm_parameter);
    const Value head = p(m.tied_head ? embedding_parameter : head_parameter);
    return tap(TapKind::head, n, n, point("logits", head_logits(tape, options, n, head)));
  }

 private:
  std::string name(std::string_view of) const { return layer_parameter(layer, of); }
  Value linear(std::string_view weight, Value x, const TensorType& type) {
    return ops::linear(tape, x, p(name(weight)), type);
  }

  // A projection to `count` heads with its bias: [T, count, h].
  Value project(TapKind kind, std::string_view letter, Value n, std::int64_t count) {
    const std::string layer_name = fmt::format("self_attn.{}_proj.", letter);
    const Value raw = linear(layer_name + "weight", n, heads(n, count));
    return tap(kind, n, n, point(letter, ops::row_bias(tape, raw, p(name(layer_name + "bias")))));
  }

  Value attention_part(Value n) {
    const Value q = rotated("q_rope", project(TapKind::q, "q", n, m.heads));
    const Value k = rotated("k_rope", project(TapKind::k, "k", n, m.kv_heads));
    const Value o = attended(q, k, project(TapKind::v, "v", n, m.kv_heads), n);
    const Value out = linear("self_attn.o_proj.weight", o, matrix(o, m.width));
    return tap(TapKind::attention_output, o, n, point("o_proj", out));
  }

  Value mlp_part(Value n) {
    const TensorType hidden = matrix(n, m.mlp_hidden);
    const Value gate = point("gate", linear("mlp.gate_proj.weight", n, hidden));
    const Value up = tap(TapKind::mlp_up, n, n, point("up", linear("mlp.up_proj.weight", n, hidden)));
    const Value activation = point("act", ops::silu_gate(tape, gate, up));
    const Value out = linear("mlp.down_proj.weight", activation, matrix(n, m.width));
    return tap(TapKind::mlp_down, activation, n, point("down", out));
  }
};

}  // namespace

Value build_forward(Tape& tape, const ModelConfig& model, const ParameterValues& parameters,
                    const ForwardInputs& inputs, const ForwardOptions& options) {
  return Builder{{tape, model, parameters, inputs, options}}.build();
}

}  // namespace mulligan::qwen2
