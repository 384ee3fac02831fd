// Rational softcap: logits z become c z / sqrt(z^2 + c^2) in f32, whatever they are for.
#include "framework/model/elements/element.h"
#include "framework/model/elements/rational_softcap/config.h"
#include "kernels/rational_softcap/op.h"

namespace mulligan::elements::rational_softcap {

extern const Element element;
const Element element = {.name = "rational_softcap",
                         .active = [](const ModelConfig& model) { return config_of(model).cap > 0; },
                         .transform_head =
                             [](const ElementContext& context, HeadUse, Value logits) {
                               return ops::rational_softcap(context.tape, logits,
                                                            config_of(context.model).cap);
                             }};

}  // namespace mulligan::elements::rational_softcap
