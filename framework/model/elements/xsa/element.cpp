// XSA: in the last layers each head's attention result loses its component along its own value.
#include "framework/model/elements/element.h"

namespace mulligan::elements::xsa {

extern const Element element;
const Element element = {.name = "xsa",
                         .active = [](const ModelConfig& model) { return model.xsa_last_layers > 0; },
                         .mix_attention =
                             [](const ElementContext& context, AttentionOutput& output) {
                               const ModelConfig& model = context.model;
                               if (output.layer() >= model.layers - model.xsa_last_layers)
                                 output.remove_value();
                             }};

}  // namespace mulligan::elements::xsa
