// Asymmetric softcap: where tokens are scored, logits above and below zero have a cap of their own, two
// parameters. The loss of training keeps the one constant, so that nothing gives them a gradient: they are to
// have the optimiser "none", and scores are those of the plain softcap until something
// else sets them (docs/architecture.md).
#include "framework/model/elements/element.h"
#include "framework/model/elements/asymmetric_softcap/config.h"
#include "kernels/asymmetric_softcap/op.h"

namespace mulligan::elements::asymmetric_softcap {
namespace {

constexpr const char *positive = "softcap_pos", *negative = "softcap_neg";

void parameters(const ModelConfig& model, std::vector<ParameterSpec>& out) {
  for (const char* name : {positive, negative})
    out.push_back({name, TensorType(MLG_F32, {1}), {{0, 1, Initial::constant, model.softcap}}, false});
}

Value transform_head(const ElementContext& context, HeadUse use, Value logits) {
  if (use != HeadUse::scoring) return logits;
  return ops::capped(context.tape, logits, context.parameters(positive), context.parameters(negative));
}

}  // namespace

extern const Element element;
const Element element = {
    .name = "asymmetric_softcap",
    .active = [](const ModelConfig& model) { return config_of(model).enabled; },
    .parameters = parameters,
    .is_inert = [](std::string_view parameter) { return parameter == positive || parameter == negative; },
    .transform_head = transform_head,
    .scores_instead_of = "softcap"};

}  // namespace mulligan::elements::asymmetric_softcap
