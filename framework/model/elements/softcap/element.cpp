// Softcap: logits z become c tanh(z / c), c = model.softcap.
#include "framework/model/elements/element.h"
#include "kernels/softcap/op.h"

namespace mulligan::elements::softcap {

extern const Element element;
const Element element = {.name = "softcap",
                         .active = [](const ModelConfig& model) { return model.softcap > 0; },
                         .transform_head =
                             [](const ElementContext& context, HeadUse use, Value logits) {
                               return use == HeadUse::training_uncapped
                                          ? logits
                                          : ops::softcap(context.tape, logits, context.model.softcap);
                             }};

}  // namespace mulligan::elements::softcap
