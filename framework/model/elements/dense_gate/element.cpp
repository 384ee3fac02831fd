// Dense gate: head h's attention result times sigmoid(<n, w_h>), n the normed input of the attention part.
#include "framework/model/elements/element.h"

namespace mulligan::elements::dense_gate {
namespace {

constexpr const char* weight = "attn.attn_gate_w";
// Standard deviation of its initial weights (docs/record_run.md#parameters).
constexpr double init_std = 0.005;

void block_parameters(const ModelConfig& m, std::int64_t layer, std::vector<ParameterSpec>& out) {
  out.push_back(one_law(block_parameter(layer, weight), TensorType(MLG_F32, {m.heads, m.width}),
                        Initial::normal, init_std, true));
}

}  // namespace

extern const Element element;
const Element element = {
    .name = "dense_gate",
    .active = [](const ModelConfig& model) { return model.attention_gate; },
    .block_parameters = block_parameters,
    .head_gate =
        [](const ModelConfig& model) {
          return HeadGate{weight, model.width};
        },
    .mix_attention = [](const ElementContext&, AttentionOutput& output) { output.apply_gate(1.0); }};

}  // namespace mulligan::elements::dense_gate
