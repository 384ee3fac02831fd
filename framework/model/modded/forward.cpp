#include "framework/model/modded/forward.h"

#include "framework/model/layer_builder.h"
#include "framework/model/modded/parameters.h"
#include "kernels/leaky_relu_squared/op.h"

namespace mulligan::modded {
namespace {

struct Builder : LayerBuilder {
  Value build() {
    const Value embedded = ops::embedding(tape, in.tokens, p(embedding_parameter));
    Value x = norm("embed_norm", embedded, embedding_norm_parameter);
    for (layer = 0; layer < m.layers; ++layer) {
      const Value a = attention_part(norm("norm1", x, of_block("norm1.gains")));
      x = add(head_rows.in_block(layer, x), a);
      x = point("block", add(x, mlp_part(norm("norm2", x, of_block("norm2.gains")))));
    }
    const Value n = last_norm(x, final_norm_parameter);
    return tap(TapKind::head, n, n, point("logits", linear("proj", n, matrix(n, m.vocabulary))));
  }

 private:
  std::string of_block(std::string_view name) const { return block_parameter(layer, name); }
  Value linear(const std::string& name, Value n, const TensorType& type) {
    return ops::linear(tape, n, p(name + ".weight"), type, p(name + ".bias"));
  }

  // A projection of the block's input to `count` heads: [T, count, h].
  Value project(TapKind kind, const std::string& letter, Value n, std::int64_t count) {
    return tap(kind, n, n, point(letter, linear(of_block("attn." + letter), n, heads(n, count))));
  }

  Value attention_part(Value n) {
    const Value q = rotated("q_rope", project(TapKind::q, "q", n, m.heads));
    const Value k = rotated("k_rope", project(TapKind::k, "k", n, m.kv_heads));
    const Value o = attended(q, k, project(TapKind::v, "v", n, m.kv_heads), n);
    const Value out = linear(of_block("attn.proj"), o, matrix(o, m.width));
    return tap(TapKind::attention_output, o, n, point("attn_proj", out));
  }

  Value mlp_part(Value n) {
    const Value hidden = point("fc", linear(of_block("mlp.fc"), n, matrix(n, m.mlp_hidden)));
    const Value activation = ops::leaky_relu_squared(tape, tap(TapKind::mlp_up, n, n, hidden), 0);
    const Value out = linear(of_block("mlp.proj"), activation, matrix(n, m.width));
    return tap(TapKind::mlp_down, activation, n, point("mlp_proj", out));
  }
};

}  // namespace

Value build_forward(Tape& tape, const ModelConfig& model, const ParameterValues& parameters,
                    const ForwardInputs& inputs, const ForwardOptions& options) {
  return Builder{{tape, model, parameters, inputs, options}}.build();
}

}  // namespace mulligan::modded
