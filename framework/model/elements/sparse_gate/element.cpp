// Sparse gate: head h's attention result times sigmoid(scale <n[:window], w_h>), n the normed input of the
// attention part. Its weights begin at zero, so that every gate is half open.
#include "framework/model/elements/element.h"
#include "framework/model/elements/sparse_gate/config.h"

namespace mulligan::elements::sparse_gate {
namespace {

// The weight has the dense gate's name, as in the public checkpoints. A model has only one of the two gates.
constexpr const char* weight = "attn.attn_gate_w";

void block_parameters(const ModelConfig& m, std::int64_t layer, std::vector<ParameterSpec>& out) {
  out.push_back(one_law(block_parameter(layer, weight), TensorType(MLG_F32, {m.heads, config_of(m).window}),
                        Initial::zeros, 0, true));
}

}  // namespace

extern const Element element;
const Element element = {
    .name = "sparse_gate",
    .active = [](const ModelConfig& model) { return config_of(model).window > 0; },
    .block_parameters = block_parameters,
    .head_gate =
        [](const ModelConfig& model) {
          return HeadGate{weight, config_of(model).window};
        },
    .mix_attention = [](const ElementContext& context,
                        AttentionOutput& output) { output.apply_gate(config_of(context.model).scale); }};

}  // namespace mulligan::elements::sparse_gate
